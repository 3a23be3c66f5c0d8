// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The base of the views that show runs of the session document. It follows the document, reads anew what the view shows
// when a run grows, puts that off while the view is hidden, and drops answers of workers that belong to another run. It
// also has what such views do alike: zooming an axis of their own, the table twin, and the copy commands.

#include <utility>
#include <vector>

#include "ui/widgets/base/view.h"

class QTableView;

namespace vitrine::ui {

class FlatTreeModel;
class LaneStack;

class DocumentView : public View {
    Q_OBJECT

public:
    using View::View;

    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    QList<QWidget*> focusStops() const override;
    /// True when the events of all shown runs have been read.
    bool settled() const override;
    void activated() override;

protected:
    /// Connects the document, if there is one, and shows its runs. The last call of a view's constructor.
    void followDocument();

    /// Fills the view from the runs and timelines as they are now.
    virtual void refresh() = 0;
    /// The runs whose events the view shows: run A, unless the view says otherwise.
    virtual std::vector<sessions::RunId> shownRuns() const;
    // What the document reports. Unless the view says otherwise, onSession() calls onSelection() and the others
    // reload().
    virtual void onSession();                   ///< a file was opened or closed
    virtual void onSelection();                 ///< other runs are A or B
    virtual void onRuns();                      ///< the list of runs, a status, a metric or a name has changed
    virtual void onEvents(sessions::RunId run); ///< one of shownRuns() has more events

    /// Calls refresh() now, or, while the view is hidden and a file is open, when it is shown next.
    void reload();

    SessionDocument* document() const { return context().document; } ///< null: there is none
    sessions::RunId runA() const { return document() != nullptr ? document()->runA() : 0; }
    sessions::RunId runB() const { return document() != nullptr ? document()->runB() : 0; }
    /// Run B where it is another run than A; else 0.
    sessions::RunId baseline() const { return runB() == runA() ? 0 : runB(); }
    const sessions::RunInfo* runInfo(sessions::RunId run) const; ///< null: there is no such run
    /// What is known of a run's events; the first call starts reading them. Nothing for run 0.
    TimelineState timelineOf(sessions::RunId run) const;
    bool live(sessions::RunId run) const; ///< the run has not ended
    bool read(sessions::RunId run) const; ///< all of its events were read, or reading failed; true for run 0
    bool allRead(const std::vector<sessions::RunId>& runs) const;

    /// Wraps the handler of a worker's answer. `shown` is the member that holds the run or runs that the view shows; an
    /// answer that comes when it holds others than at the question is dropped.
    template <typename Shown, typename F> static auto ifStill(const Shown& shown, F handler) {
        return [now = &shown, asked = shown, handler = std::move(handler)](auto&& answer) {
            if (*now == asked) {
                handler(std::forward<decltype(answer)>(answer));
            }
        };
    }

    /// Asks for the experiment of a run with one setting changed, such as another profile.
    void wantExperimentWith(sessions::RunId run, const char* key, const std::string& value);

    // Parts that a view may have.
    virtual TimeCursor* ownAxis() const { return nullptr; }     ///< an axis beside that of run A
    virtual QList<LaneStack*> laneStacks() const { return {}; } ///< they do the commands about lanes
    virtual QList<QWidget*> bodyStops() const { return {}; }    ///< where F6 and Tab stop in the body
    virtual QList<QWidget*> tableStops() const;                 ///< and in the table twin
    /// What Copy and Copy why put on the clipboard; a null string leaves the command to the window.
    virtual QString copyText() const { return {}; }
    virtual QString whyText() const { return {}; }

    /// Makes a plain table the twin of the body. `name` is its accessible name.
    void makeTwin(const QString& name);
    QTableView* twin() const { return twin_; }
    FlatTreeModel* twinModel() const { return twinModel_; }
    /// The chosen rows of the twin where it is shown, separated by tabs; else the readout.
    QString shownText() const;

private:
    bool zoom(const QString& action);

    bool stale_ = true;
    QTableView* twin_ = nullptr;
    FlatTreeModel* twinModel_ = nullptr;
};

} // namespace vitrine::ui

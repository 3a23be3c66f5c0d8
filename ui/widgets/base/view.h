// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The base of every view: a header row, an error strip, a body that can be replaced by its table twin or by an empty
// state, and an inspector for the dock at the right. A view wires models to widgets; it computes nothing itself.

#include <QImage>
#include <QList>
#include <QString>
#include <QWidget>
#include <functional>

#include "ui/models/common/device_feed.h"
#include "ui/models/common/run_controller.h"
#include "ui/models/common/time_cursor.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/base/action_list.h"
#include "ui/widgets/base/controls.h"

class QCheckBox;
class QComboBox;
class QStackedLayout;

namespace vitrine::ui {

class SessionEdits;

/// What a view works with. Everything outlives the views; `runs` may be null where nothing can be started.
struct ViewServices {
    SessionDocument* document = nullptr;
    TimeCursor* time = nullptr;
    RunController* runs = nullptr;
    ActionList* actions = nullptr;
    QString settingsFile = {};     ///< where choices are kept; empty: nowhere
    DeviceFeed* devices = nullptr; ///< devices of this machine; null: nothing is known of them
    SessionEdits* edits = nullptr; ///< null: nothing can be edited
};

/// The row at the top of a view, 32 high: title, controls, facts at the right, the table button.
class ViewHeader final : public QWidget {
    Q_OBJECT

public:
    explicit ViewHeader(const QString& title, QWidget* parent = nullptr);

    SegmentedControl* addSegments(const QStringList& texts, const QString& accessibleName);
    QCheckBox* addCheck(const QString& text, bool on);
    QComboBox* addCombo(const QString& accessibleName);
    void addControl(QWidget* control);      ///< left part, after the title
    void addRightControl(QWidget* control); ///< right part, before the table button
    void setTitle(const QString& title);
    /// Text3 at the right; `key` is shown in a frame after it. Disappears first when there is little room.
    void setFacts(const QString& facts, const QString& key = {});
    void setTableButton(bool visible);
    bool tableShown() const;
    void setTableShown(bool on);
    QSize minimumSizeHint() const override; ///< with all that gives way gone

signals:
    void tableToggled(bool on);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void fit();
    int tableWordsWidth() const;
    TextLabel* title_;
    QHBoxLayout* left_;
    QHBoxLayout* right_;
    TextLabel* facts_;
    QWidget* key_ = nullptr;
    QPushButton* table_;
    bool tableShort_ = false; ///< one word instead of three
};

class View : public QWidget {
    Q_OBJECT

public:
    /// `id` is the last part of the view's action: "memory" of "go.memory".
    View(const QString& id, const QString& title, const ViewServices& context, QWidget* parent = nullptr);

    const QString& id() const { return id_; }
    const QString& title() const { return title_; }
    ViewHeader* header() const { return header_; }

    /// Content of the inspector dock and its header; null: the view has none. Both are owned by the view until the
    /// window takes them into its dock. Called once.
    virtual QWidget* inspector() { return nullptr; }
    virtual QWidget* inspectorHeader() { return nullptr; }
    virtual int inspectorWidth() const { return 348; }
    /// False while a page of the view needs the whole width; emit inspectorWanted() when that changes.
    virtual bool wantsInspector() const { return true; }

    /// Does a command of the ActionList; false: not mine.
    virtual bool perform(const QString& action);
    /// Empty: the view can do it now. Otherwise the reason, which the palette shows.
    virtual QString whyNot(const QString& action) const;
    /// True: Undo and Redo are the view's own, of what is typed there. Elsewhere they are those of the session's edits.
    virtual bool undoesItself() const { return false; }
    /// Looks for text typed in the search field; direction 0 is "typed", +1 Enter, -1 Shift+Enter.
    /// Returns what the field's hint says: "3 of 12", "" for nothing to say.
    virtual QString find(const QString& text, int direction);
    /// Widgets that F6 and Tab pass through, in order, after the header.
    virtual QList<QWidget*> focusStops() const { return {}; }
    /// Parts of the view in the order in which Tab passes through them.
    virtual QList<QWidget*> focusOrder() const { return focusStops(); }
    /// What a picture of the view needs before it is taken offscreen: everything loaded and laid out.
    virtual bool settled() const { return true; }
    /// Shows a page of the view: what stands behind its id in openView(), "run/2".
    virtual void showPage(const QString& page);
    /// Shows an experiment in the view's form: what "Try" and "Run again with changes" hand to the Run view.
    virtual void takeExperiment(const QString& experimentJson);
    /// A model folder, or GGUF file, that was opened or dropped.
    virtual void takeFolder(const QString& path);
    /// A file of rows to train on that was opened or dropped.
    virtual void takeData(const QString& path);
    /// Called when the view becomes the current one and when it stops being it.
    virtual void activated() {}
    virtual void deactivated() {}

    void showError(const QString& sentence, const QString& details = {});
    /// Puts a text with one action in place of the body; an empty text brings the body back.
    void showEmpty(const QString& text, const QString& button = {}, std::function<void()> action = {});
    bool emptyShown() const;
    QString emptyText() const;
    const QString& readout() const { return readout_; }

    /// The view alone as a picture, at a size and a device ratio, without a window.
    QImage picture(const QSize& size, double dpr);

signals:
    void readoutChanged(const QString& text);             ///< left part of the status bar
    void openView(const QString& id);                     ///< the window switches; "ID/PAGE" to a page of it
    void inspectorWanted();                               ///< wantsInspector() changed
    void experimentWanted(const QString& experimentJson); ///< the window opens the Run view with it
    void fileWanted(const QString& path);                 ///< the window opens the session
    void queueWanted(const QString& experimentJson);      ///< the window opens the queue and adds it
    void availabilityChanged();                           ///< what whyNot() says may have changed
    void searchWanted();                                  ///< the window gives the search field the focus
    void noteWanted(qint64 note);                         ///< the window shows it for editing
    void priced(const QString& text);                     ///< right part of the status bar, empty hides

protected:
    const ViewServices& context() const { return context_; }
    void setBody(QWidget* body);
    void setTable(QWidget* table); ///< the twin that "Show as table" swaps in
    void setReadout(const QString& text);
    /// Says that there is no session or no run A, with what to do about it; false: there is one.
    bool showMissingRun();

private:
    void updateStack();

    QString id_, title_, readout_;
    ViewServices context_;
    ViewHeader* header_;
    ErrorStrip* error_;
    EmptyState* empty_;
    QStackedLayout* stack_;
    QWidget* body_ = nullptr;
    QWidget* table_ = nullptr;
    bool emptyShown_ = false;
};

} // namespace vitrine::ui

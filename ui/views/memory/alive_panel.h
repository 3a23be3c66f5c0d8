// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the Memory view: what is alive at the cursor, and below it the pinned allocation.

#include <QWidget>

#include "ui/models/flat_tree.h"
#include "ui/models/latest_job.h"
#include "ui/models/session_document.h"
#include "ui/models/time_cursor.h"
#include "ui/widgets/controls.h"

class QComboBox;
class QFormLayout;
class QPushButton;
class QSplitter;
class QTreeView;

namespace vitrine::ui {

/// Facts about one allocation, as a form: text in accent is a link.
class PinnedPanel final : public QWidget {
    Q_OBJECT

public:
    explicit PinnedPanel(QWidget* parent);
    void show(const profiler::MemoryTimeline& timeline, std::size_t row);
    void clear();
    QString asText() const; ///< what "Copy as text" copies

signals:
    void closed();
    void scopeWanted(quint64 scope);
    void onlyWanted();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void addRow(const QString& name, const QString& value, const QString& more = {}, bool warn = false,
                bool mono = false);
    DockHeader* header_;
    QWidget* form_;
    QFormLayout* rows_;
    QWidget* buttons_;
    TextLabel* hint_;
    quint64 scope_ = 0;
    QStringList text_;
};

class AlivePanel final : public QWidget {
    Q_OBJECT

public:
    AlivePanel(TimeCursor* time, QWidget* parent);

    DockHeader* header() const { return header_; }
    void setTimeline(TimelinePtr timeline);
    void setGroupBy(profiler::GroupBy groupBy);
    QTreeView* tree() const { return tree_; }
    FlatTreeModel* model() const { return model_; }
    PinnedPanel* pinned() const { return pinned_; }
    bool waiting() const { return job_.busy(); }
    /// The instant that the tree shows: the cursor, else the peak.
    base::TimeNs shownTime() const;

signals:
    void groupChanged(int groupBy);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void refresh();
    void fitColumns();
    void showPinned();
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

    TimeCursor* time_;
    TimelinePtr timeline_;
    profiler::GroupBy groupBy_ = profiler::GroupBy::Category;
    base::TimeNs peakTime_ = 0;
    DockHeader* header_;
    QComboBox* group_;
    QSplitter* splitter_;
    QTreeView* tree_;
    FlatTreeModel* model_;
    PinnedPanel* pinned_;
    bool expandedOnce_ = false;
    LatestJob<FlatTreePtr> job_;
};

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the Memory view: what is alive at the cursor, and below it the pinned allocation.

#include <QWidget>

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/latest_job.h"
#include "ui/models/common/time_cursor.h"
#include "ui/models/session/session_document.h"
#include "ui/views/memory/pinned_panel.h"
#include "ui/widgets/base/controls.h"

class QComboBox;
class QSplitter;
class QTreeView;

namespace vitrine::ui {

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

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The kernel table of a stretch of a run with its filter: a page of the Kernels view and a tab of the drawer.

#include "ui/models/common/latest_job.h"
#include "ui/models/kernels/kernel_stats.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/base/controls.h"

class QLineEdit;
class QStackedLayout;
class QTreeView;

namespace vitrine::ui {

class KernelList final : public QWidget {
    Q_OBJECT

public:
    /// `panel`: on a dock instead of the canvas.
    explicit KernelList(bool panel, QWidget* parent);

    /// Counts the kernels that begin in the range, on a pool thread; null clears.
    void setSource(const TimelinePtr& timeline, const Ceilings& ceilings, TimeRange range, const QString& where);
    /// What the list says when there are no kernels at all.
    void setWhyEmpty(const QString& sentence);
    void choose(const QString& kernel);
    bool waiting() const { return job_.busy(); }
    KernelStatsPtr stats() const { return stats_; }

    QTreeView* table() const { return table_; }
    QLineEdit* filter() const { return filter_; }
    FlatTreeModel* model() const { return model_; }
    QString text() const; ///< selected rows, else all, as tab-separated text

signals:
    void kernelChosen(const QString& name);
    void rebuilt();

private:
    void refresh();
    QLineEdit* filter_;
    TextLabel* facts_;
    QTreeView* table_;
    EmptyState* empty_;
    QStackedLayout* stack_;
    FlatTreeModel* model_;
    KernelStatsPtr stats_;
    QString where_, whyEmpty_;
    LatestJob<KernelStatsPtr> job_;
};

} // namespace vitrine::ui

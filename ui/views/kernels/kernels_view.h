// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the device ran and when: the trace of scopes and kernels with hardware counters below it, the table of kernels,
// the icicle of device time, and the variant of each op with its A/B.

#include "ui/models/common/latest_job.h"
#include "ui/models/kernels/kernel_variants.h"
#include "ui/views/common/document_view.h"
#include "ui/views/kernels/counter_lanes.h"
#include "ui/views/kernels/kernel_panel.h"
#include "ui/views/kernels/trace_search.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/trace_lane.h"

class QStackedWidget;
class QTreeView;

namespace vitrine::ui {

class FlamePlot;
class KernelList;
class TraceArrows;
class VariantsPanel;

class KernelsView final : public DocumentView {
    Q_OBJECT

public:
    enum Page { Trace, Table, Flame, Variants };

    explicit KernelsView(const ViewServices& context, QWidget* parent = nullptr);
    ~KernelsView() override;

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    int inspectorWidth() const override { return 328; }
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    QString find(const QString& text, int direction) override;
    bool settled() const override;
    void activated() override;

    void showPage(Page page);
    Page page() const;
    LaneStack* stack() const { return lanes_; }
    TraceLane* scopeLane() const { return scopeLane_; }
    TraceLane* kernelLane() const { return kernelLane_; }
    TraceArrows* arrows() const { return arrows_; }
    KernelList* list() const { return list_; }
    FlamePlot* flame() const { return flame_; }
    VariantsPanel* variants() const { return variants_; }
    KernelPanel* panel() const { return panel_; }
    const KernelTracePtr& trace() const { return trace_; }
    QString note() const { return note_->text(); }

protected:
    void refresh() override;
    std::vector<sessions::RunId> shownRuns() const override { return {run_, baseline_}; }
    void onSelection() override;
    void onRuns() override;
    void onEvents(sessions::RunId run) override;
    QList<LaneStack*> laneStacks() const override { return {lanes_}; }
    QList<QWidget*> bodyStops() const override;
    QList<QWidget*> tableStops() const override;
    QString copyText() const override;
    QString whyText() const override { return panel_->asText(); }

private:
    void buildTrace();
    void buildPages();
    void connectLane(TraceLane* lane);
    void onTimeline();
    void onBaseline();
    void openOnTheWork();
    void takeTrace(KernelTracePtr trace);
    void takeStats(KernelStatsPtr stats);
    void readShapes();
    void updateEmpty();
    void updateNote();
    void updateLanes();
    void updateCounters();
    void updateRange();
    void updateTable();
    void updateFlame();
    void updateTwin();
    void updateVariants();
    void updateLit();
    void updateReadout();
    void followSelection(std::uint64_t scope);
    void chooseKernel(const QString& name);
    void walkKernels(int direction);
    void takeChosen(TraceLane* lane);
    TimeRange countedRange() const;
    std::uint64_t litScope() const;
    TraceLane* focusedTrace() const;
    void contextMenu(const QPoint& position, base::TimeNs time);

    TimelinePtr timeline_;
    sessions::RunId run_ = 0, baseline_ = 0;
    sessions::RunId openedOn_ = 0; ///< the run whose work was shown at first
    KernelTracePtr trace_;
    KernelStatsPtr stats_;
    VariantListPtr listA_, listB_;
    KernelStatsPtr statsB_;

    SegmentedControl *pageChoice_ = nullptr, *axis_ = nullptr;
    QCheckBox* arrowsCheck_ = nullptr;
    QWidget* noteStrip_ = nullptr;
    TextLabel* note_ = nullptr;
    QStackedWidget* pages_ = nullptr;
    LaneStack* lanes_ = nullptr;
    TraceLane *scopeLane_ = nullptr, *kernelLane_ = nullptr;
    std::vector<TraceLane*> otherLanes_; ///< of tracks beyond scopes and kernels
    std::unique_ptr<CounterLanes> counters_;
    TraceArrows* arrows_ = nullptr;
    KernelList* list_ = nullptr;
    FlamePlot* flame_ = nullptr;
    VariantsPanel* variants_ = nullptr;
    KernelPanel* panel_ = nullptr;
    QTreeView* twin_ = nullptr;
    FlatTreeModel* twinModel_ = nullptr;
    profiler::FlameTreePtr flameTree_;

    int walkedAt_ = -1; ///< of the kernels of the lit op
    std::uint64_t walkedScope_ = 0;
    std::uint64_t followedScope_ = 0; ///< the inspector shows it, or what was chosen after it
    TraceSearch search_;

    LatestJob<KernelTracePtr> traceJob_;
    LatestJob<KernelStatsPtr> statsJob_, statsJobB_;
    LatestJob<VariantListPtr> listJob_, listJobB_;
    LatestJob<profiler::FlameTreePtr> flameJob_;
};

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Memory of a run over time: stacked areas, the largest free block, allocations as shapes, what is alive at the cursor,
// and, as a page of its own, why the run went out of memory.

#include <optional>

#include "profiler/analysis/memory_lookup.h"
#include "profiler/analysis/scope_places.h"
#include "ui/models/memory/allocation_table.h"
#include "ui/views/common/document_view.h"
#include "ui/widgets/timeline/counter_lane.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"

class QStackedWidget;
class QTreeView;

namespace vitrine::ui {

class AlivePanel;
class OomPanel;
class PlanOverlay;

class MemoryView final : public DocumentView {
    Q_OBJECT

public:
    explicit MemoryView(const ViewServices& context, QWidget* parent = nullptr);
    ~MemoryView() override;

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    int inspectorWidth() const override { return 376; }
    bool wantsInspector() const override { return !oomShown(); }
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    QString find(const QString& text, int direction) override;
    QList<QWidget*> focusStops() const override;
    bool settled() const override;
    void activated() override;

    LaneStack* stack() const { return lanes_; }
    StackLane* stackLane() const { return stackLane_; }
    AllocationLane* allocationLane() const { return allocationLane_; }
    CurveLane* freeLane() const { return freeLane_; }
    const std::vector<CounterLane*>& counterLanes() const { return counterLanes_; }
    AlivePanel* alive() const { return alive_; }
    OomPanel* oomPage() const { return oomPage_; }
    QCheckBox* planCheck() const { return planCheck_; }
    bool oomShown() const;

protected:
    void refresh() override;
    void onSelection() override { refresh(); } // also while hidden: the window asks it why memory ran out
    void onRuns() override {}                  // names and metrics are not shown
    void onEvents(sessions::RunId) override { onTimeline(); }
    QList<LaneStack*> laneStacks() const override { return {lanes_}; }
    QString copyText() const override;
    QString whyText() const override { return copyText(); }

private:
    void buildHeader();
    void buildLanes();
    void onTimeline();
    void goToScope(quint64 scope);
    void setGroupBy(int index);
    void updateBudget();
    void updatePlan();
    void readNotes();
    void walkLinks(int direction);
    void updateLegend();
    void updateReadout();
    void updateMarks();
    void updateTable();
    void updateFreeLane();
    void goToPeak(int direction);
    void showOom(bool shown);
    void contextMenu(const QPoint& position, base::TimeNs time);
    void takeFound(profiler::FoundAllocations found);

    TimelinePtr timeline_;
    sessions::RunId run_ = 0;
    SegmentedControl *group_ = nullptr, *axis_ = nullptr, *layout_ = nullptr;
    QCheckBox *budgetCheck_ = nullptr, *planCheck_ = nullptr, *reservedCheck_ = nullptr;
    QStackedWidget* pages_ = nullptr;
    LaneStack* lanes_ = nullptr;
    StackLane* stackLane_ = nullptr;
    CurveLane* freeLane_ = nullptr;
    AllocationLane* allocationLane_ = nullptr;
    std::vector<CounterLane*> counterLanes_;
    OomPanel* oomPage_ = nullptr;
    PlanOverlay* plan_ = nullptr;
    AlivePanel* alive_ = nullptr;
    QTreeView* table_ = nullptr;
    AllocationTableModel* tableModel_ = nullptr;
    std::optional<std::uint64_t> budget_;
    std::vector<sessions::TimelineNote> notes_;
    std::uint64_t linksOf_ = 0; ///< the allocation whose links are walked
    int linkAt_ = -1;
    QString findText_;
    profiler::FoundAllocations found_;
    std::size_t foundAt_ = 0;
    LatestJob<profiler::FoundAllocations> findJob_;
};

} // namespace vitrine::ui

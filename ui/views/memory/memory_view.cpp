// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/memory_view.h"

#include <QCheckBox>
#include <QHeaderView>
#include <QStackedWidget>
#include <QTreeView>

#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"
#include "ui/views/memory/alive_panel.h"
#include "ui/views/memory/oom_panel.h"
#include "ui/views/memory/plan_overlay.h"
#include "ui/widgets/base/delegates.h"

namespace vitrine::ui {

MemoryView::MemoryView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("memory"), tr("Memory"), context, parent), findJob_(this) {
    pages_ = new QStackedWidget(this);
    alive_ = new AlivePanel(context.time, this);
    buildLanes();
    buildHeader();
    oomPage_ = new OomPanel(context, pages_);
    pages_->addWidget(lanes_);
    pages_->addWidget(oomPage_);
    setBody(pages_);
    table_ = new QTreeView(this);
    table_->setAccessibleName(tr("Allocations in the visible range"));
    tableModel_ = new AllocationTableModel(this);
    setUpTable(table_, false, false);
    table_->header()->setSortIndicator(AllocationTableModel::Size, Qt::DescendingOrder);
    table_->setModel(tableModel_);
    setTable(table_);
    const int widths[] = {280, 96, 90, 90, 90, 220, 240, 150};
    for (int i = 0; i < AllocationTableModel::ColumnCount; ++i) {
        table_->setColumnWidth(i, widths[i]);
    }
    connect(table_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
        const std::size_t row = tableModel_->allocation(index.row());
        this->context().time->select({timeline_->memory().allocations()[row].id, 0});
        this->context().time->setCursor(timeline_->memory().allocations()[row].born);
    });
    connect(header(), &ViewHeader::tableToggled, this, &MemoryView::updateTable);
    connect(context.time, &TimeCursor::cursorChanged, this, [this] {
        updateLegend();
        updateReadout();
    });
    connect(context.time, &TimeCursor::measuredChanged, this, &MemoryView::updateReadout);
    connect(context.time, &TimeCursor::selectionChanged, this, [this] {
        if (this->context().time->selection().allocation != linksOf_) {
            linkAt_ = -1;
        }
        emit availabilityChanged();
    });
    connect(context.document, &SessionDocument::notesChanged, this, &MemoryView::readNotes);
    connect(context.time, &TimeCursor::rangeChanged, this, &MemoryView::updateTable);
    connect(alive_->pinned(), &PinnedPanel::scopeWanted, this, &MemoryView::goToScope);
    connect(alive_->pinned(), &PinnedPanel::onlyWanted, this, [this] {
        const auto row =
            timeline_ ? timeline_->memory().findAllocation(this->context().time->selection().allocation) : std::nullopt;
        if (row) {
            allocationLane_->setOnlyName(timeline_->memory().allocations()[*row].name);
        }
    });
    connect(oomPage_, &OomPanel::goWanted, this, [this](qint64 time) {
        showOom(false);
        this->context().time->goTo(time);
    });
    connect(oomPage_, &OomPanel::experimentWanted, this, &View::experimentWanted);
    connect(oomPage_, &OomPanel::backWanted, this, [this] { showOom(false); });
    followDocument();
}

MemoryView::~MemoryView() = default;

void MemoryView::buildHeader() {
    group_ = header()->addSegments({tr("Category"), tr("Layer"), tr("Op"), tr("Dtype")}, tr("Stack by"));
    axis_ = header()->addSegments({tr("Time"), tr("Events")}, tr("Horizontal axis"));
    budgetCheck_ = header()->addCheck(tr("Budget"), true);
    planCheck_ = header()->addCheck(tr("Plan"), false);
    reservedCheck_ = header()->addCheck(tr("Reserved"), false);
    connect(group_, &SegmentedControl::currentChanged, this, &MemoryView::setGroupBy);
    connect(axis_, &SegmentedControl::currentChanged, this,
            [this](int index) { lanes_->setAxisKind(static_cast<AxisKind>(index)); });
    connect(budgetCheck_, &QCheckBox::toggled, this, &MemoryView::updateBudget);
    plan_ = new PlanOverlay(context(), this);
    connect(planCheck_, &QCheckBox::toggled, plan_, &PlanOverlay::setShown);
    connect(plan_, &PlanOverlay::changed, this, &MemoryView::updatePlan);
    connect(reservedCheck_, &QCheckBox::toggled, this, [this](bool on) { stackLane_->setReserved(on); });
}

void MemoryView::buildLanes() {
    TimeCursor* time = context().time;
    lanes_ = new LaneStack(time, LaneStack::AllStrips, pages_);
    stackLane_ = new StackLane(tr("Memory by category"), time, lanes_);
    stackLane_->setHeader(false);
    freeLane_ = new CurveLane(tr("Largest free block under the budget"), time, lanes_);
    allocationLane_ = new AllocationLane(tr("Allocations by address"), time, lanes_);
    layout_ = new SegmentedControl({tr("Address"), tr("Stack")}, allocationLane_);
    layout_->setAccessibleName(tr("Vertical order"));
    layout_->setFixedHeight(20);
    allocationLane_->addHeaderControl(layout_);
    for (Lane* lane :
         {static_cast<Lane*>(stackLane_), static_cast<Lane*>(freeLane_), static_cast<Lane*>(allocationLane_)}) {
        lanes_->addLane(lane);
    }
    counterLanes_ = makeGpuCounterLanes(time, lanes_);
    for (CounterLane* lane : counterLanes_) {
        lanes_->addLane(lane);
    }
    connect(layout_, &SegmentedControl::currentChanged, this, [this](int index) {
        allocationLane_->setTitle(index == 0 ? tr("Allocations by address") : tr("Allocations, stacked"));
        allocationLane_->setByAddress(index == 0);
    });
    connect(stackLane_, &StackLane::modelChanged, this, &MemoryView::updateLegend);
    connect(lanes_->legend(), &Legend::onlyChanged, this, [this] {
        stackLane_->setOnly(lanes_->legend()->only());
        if (group_->current() == 0) {
            allocationLane_->setCategories(lanes_->legend()->only());
        }
    });
    connect(lanes_, &LaneStack::noteWanted, this, &View::noteWanted);
    connect(lanes_, &LaneStack::hovered, this, &MemoryView::updateReadout);
    connect(lanes_, &LaneStack::menuWanted, this, &MemoryView::contextMenu);
    connect(allocationLane_, &AllocationLane::pointed, this, &MemoryView::updateReadout);
    connect(alive_, &AlivePanel::groupChanged, this, [this](int index) { group_->setCurrent(index); });
}

QWidget* MemoryView::inspector() {
    return alive_;
}

QWidget* MemoryView::inspectorHeader() {
    return alive_->header();
}

void MemoryView::goToScope(quint64 scope) {
    if (const profiler::ScopeRow* row = timeline_ ? timeline_->scopes().find(scope) : nullptr) {
        const base::TimeNs end = row->end < 0 ? timeline_->end() : row->end;
        const base::TimeNs air = std::max<base::TimeNs>(1, (end - row->begin) / 4);
        context().time->setRange({row->begin - air, end + air});
        context().time->setMeasured(TimeRange{row->begin, end});
    }
}

void MemoryView::refresh() {
    if (runA() != run_) {
        showOom(false);
        found_ = {};
        notes_.clear();
    }
    run_ = runA();
    showMissingRun();
    plan_->setRun(run_);
    updatePlan();
    readNotes();
    onTimeline();
}

void MemoryView::readNotes() {
    document()->readNotes(run_, this, ifStill(run_, [this](std::vector<sessions::TimelineNote> notes) {
                              notes_ = std::move(notes);
                              updateMarks();
                          }));
}

void MemoryView::onTimeline() {
    const TimelineState state = timelineOf(run_);
    timeline_ = state.timeline;
    lanes_->setTimeline(timeline_);
    stackLane_->setTimeline(timeline_);
    allocationLane_->setTimeline(timeline_);
    for (CounterLane* lane : counterLanes_) {
        lane->setTimeline(timeline_);
    }
    alive_->setTimeline(timeline_);
    oomPage_->setRun(run_, timeline_);
    updateBudget();
    updateMarks();
    updateFreeLane();
    updateTable();
    updateReadout();
    if (timeline_) {
        std::vector<base::TimeNs> guides;
        if (timeline_->scopes().phases().size() < 200) {
            for (const profiler::ScopeRow phase : timeline_->scopes().phases()) {
                guides.push_back(phase.begin);
            }
        }
        stackLane_->setGuides(std::move(guides));
        const profiler::MemoryColumn peak = timeline_->memory().peak(timeline_->begin(), timeline_->end() + 1);
        header()->setFacts(
            peak.maxTotal > 0
                ? tr("Peak %1 at %2").arg(peakText(peak.maxTotal, peak.incomplete), instantText(peak.maxTime))
                : QString(),
            QStringLiteral("P"));
        reservedCheck_->setEnabled(!timeline_->counters().samples("reserved_bytes").empty());
        reservedCheck_->setToolTip(reservedCheck_->isEnabled() ? QString()
                                                               : tr("This run has no counter of reserved bytes"));
    }
    if (run_ == 0) {
        return;
    }
    if (timeline_ && timeline_->memory().events() > 0) {
        showEmpty({});
    } else if (state.complete && live(run_)) {
        showEmpty(tr("The run has begun and holds no memory yet."));
    } else if (state.complete) {
        const sessions::RunInfo* info = runInfo(run_);
        const QString why = info == nullptr ? QString() : QString::fromStdString(info->error);
        showEmpty(why.isEmpty()
                      ? tr("This run recorded no memory events. Run it again with the profile set to light or full.")
                      : tr("This run ended before it held any memory: %1").arg(why),
                  tr("Run again"), [this] { context().actions->action(QStringLiteral("run.again"))->trigger(); });
    } else {
        showEmpty(tr("Reading the events of this run."));
    }
}

void MemoryView::setGroupBy(int index) {
    const auto by = static_cast<profiler::GroupBy>(index);
    const QString titles[] = {tr("Memory by category"), tr("Memory by layer"), tr("Memory by op"),
                              tr("Memory by dtype")};
    stackLane_->setTitle(titles[index]);
    lanes_->legend()->setOnly({});
    allocationLane_->setCategories({});
    stackLane_->setGroupBy(by);
    alive_->setGroupBy(by);
}

bool MemoryView::oomShown() const {
    return pages_->currentWidget() == oomPage_;
}

void MemoryView::showOom(bool shown) {
    if (oomPage_ == nullptr || oomShown() == shown) {
        return;
    }
    pages_->setCurrentIndex(shown ? 1 : 0);
    header()->setVisible(!shown);
    emit inspectorWanted();
    if (shown) {
        oomPage_->setFocus();
    }
}

QList<QWidget*> MemoryView::focusStops() const {
    return oomShown() ? QList<QWidget*>{oomPage_} : lanes_->focusStops();
}

bool MemoryView::settled() const {
    return run_ == 0 || (read(run_) && !stackLane_->waiting() && !allocationLane_->waiting() && !alive_->waiting() &&
                         !plan_->waiting() && !tableModel_->waiting() && !oomPage_->waiting());
}

void MemoryView::activated() {
    if (!oomShown()) {
        stackLane_->setFocus();
    }
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Kernels view.
#include <QCheckBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QStackedWidget>
#include <QTreeView>
#include <QVBoxLayout>

#include "ui/views/kernels/kernel_list.h"
#include "ui/views/kernels/kernels_view.h"
#include "ui/views/kernels/variants_panel.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/plots/flame_plot.h"
#include "ui/widgets/plots/kernel_roofline.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/trace_arrows.h"

namespace vitrine::ui {

KernelsView::KernelsView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("kernels"), tr("Kernels"), context, parent), traceJob_(this), statsJob_(this),
      statsJobB_(this), listJob_(this), listJobB_(this), flameJob_(this) {
    pageChoice_ = header()->addSegments({tr("Trace"), tr("Table"), tr("Flame"), tr("Variants")}, tr("What is shown"));
    axis_ = header()->addSegments({tr("Time"), tr("Events")}, tr("Horizontal axis"));
    arrowsCheck_ = header()->addCheck(tr("Arrows"), true);
    panel_ = new KernelPanel(this);
    buildTrace();
    buildPages();
    twin_ = new QTreeView(this);
    setUpTable(twin_, true, false);
    twinModel_ = new FlatTreeModel(this);
    twin_->setModel(twinModel_);
    twin_->setAccessibleName(tr("What the plot shows, as a table"));
    setTable(twin_);

    connect(pageChoice_, &SegmentedControl::currentChanged, this, [this](int index) { showPage(Page(index)); });
    connect(axis_, &SegmentedControl::currentChanged, this,
            [this](int index) { lanes_->setAxisKind(static_cast<AxisKind>(index)); });
    connect(arrowsCheck_, &QCheckBox::toggled, arrows_, &TraceArrows::setShown);
    connect(header(), &ViewHeader::tableToggled, this, &KernelsView::updateTwin);
    for (const auto signal : {&TimeCursor::rangeChanged, &TimeCursor::measuredChanged}) {
        connect(context.time, signal, this, [this] {
            if (isVisible()) {
                updateRange();
            }
        });
    }
    connect(context.time, &TimeCursor::cursorChanged, this, &KernelsView::updateReadout);
    connect(context.time, &TimeCursor::measuredChanged, this, &KernelsView::updateReadout);
    connect(context.time, &TimeCursor::selectionChanged, this, &KernelsView::updateLit);
    showPage(Trace);
    onSelection();
    followDocument();
}

KernelsView::~KernelsView() = default;

void KernelsView::connectLane(TraceLane* lane) {
    connect(lane, &TraceLane::chosenByUser, this, [this, lane] { takeChosen(lane); });
    connect(lane, &TraceLane::pointed, this, &KernelsView::updateReadout);
}

void KernelsView::buildTrace() {
    TimeCursor* time = context().time;
    pages_ = new QStackedWidget(this);
    lanes_ = new LaneStack(time, LaneStack::WithRuler | LaneStack::WithBands, pages_);
    lanes_->setPacked();
    lanes_->setKeptOpen(2);
    scopeLane_ = new TraceLane(tr("Scope"), time, lanes_);
    kernelLane_ = new TraceLane(tr("Kernels"), time, lanes_);
    for (TraceLane* lane : {scopeLane_, kernelLane_}) {
        lanes_->addLane(lane);
        connectLane(lane);
    }
    scopeLane_->setPinned(true);
    counters_ = std::make_unique<CounterLanes>(time, lanes_);
    arrows_ = new TraceArrows(scopeLane_, kernelLane_, lanes_);
    connect(lanes_, &LaneStack::hovered, this, &KernelsView::updateReadout);
    connect(lanes_, &LaneStack::noteWanted, this, &View::noteWanted);
    connect(lanes_, &LaneStack::menuWanted, this, &KernelsView::contextMenu);
}

void KernelsView::buildPages() {
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, this);
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    noteStrip_ = new Surface(Surface::Fill::Panel, Surface::Bottom, body);
    noteStrip_->setFixedHeight(24);
    auto* row = new QHBoxLayout(noteStrip_);
    row->setContentsMargins(12, 0, 12, 0);
    note_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, noteStrip_);
    note_->setElide(true);
    row->addWidget(note_, 1);
    column->addWidget(noteStrip_);
    column->addWidget(pages_, 1);
    list_ = new KernelList(false, pages_);
    flame_ = new FlamePlot(tr("Device time by step type, layer, op and kernel"), pages_);
    variants_ = new VariantsPanel(context(), pages_);
    pages_->addWidget(lanes_);
    pages_->addWidget(list_);
    pages_->addWidget(flame_);
    pages_->addWidget(variants_);
    setBody(body);
    connect(list_, &KernelList::kernelChosen, this, &KernelsView::chooseKernel);
    connect(list_, &KernelList::rebuilt, this, &KernelsView::updateTwin);
    connect(variants_, &VariantsPanel::kernelChosen, this, &KernelsView::chooseKernel);
    connect(variants_, &VariantsPanel::availabilityChanged, this, &View::availabilityChanged);
    connect(panel_, &KernelPanel::kernelChosen, this, &KernelsView::chooseKernel);
    connect(panel_, &KernelPanel::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(flame_, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(flame_, &FlamePlot::nodeChosen, this, [this](const QString& name) {
        if (stats_ && kernelNamed(stats_->table, name.toStdString())) {
            chooseKernel(name);
        }
    });
}

QWidget* KernelsView::inspector() {
    return panel_;
}

QWidget* KernelsView::inspectorHeader() {
    return panel_->header();
}

} // namespace vitrine::ui

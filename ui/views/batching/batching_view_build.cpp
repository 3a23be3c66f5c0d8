// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Batching view.
#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/models/batching/request_choice.h"
#include "ui/views/batching/batch_panel.h"
#include "ui/views/batching/batching_view.h"
#include "ui/views/batching/sweep_panel.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

namespace {

constexpr int kCurveHeight = 40;

} // namespace

BatchingView::BatchingView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("batching"), tr("Batching"), context, parent), job_(this) {
    time_ = new TimeCursor(this);
    pageChoice_ = header()->addSegments({tr("Slots"), tr("Requests"), tr("Sweep")}, tr("What is shown"));
    axisChoice_ = header()->addSegments({tr("Time"), tr("Steps")}, tr("Horizontal axis"));
    runningOnly_ = header()->addCheck(tr("Only running"), false);
    runningOnly_->setToolTip(tr("Rows for the requests that run at the cursor only (R)"));
    header()->addControl(new TextLabel(tr("Trace"), TypeRole::Table, TextColor::Text3, false, header()));
    traceChoice_ = header()->addCombo(tr("Trace of requests"));
    connect(traceChoice_, &QComboBox::activated, this, &BatchingView::chooseTrace);
    buildBody();
    buildInspector();
    makeTwin(tr("What the plot shows, as a table"));

    connect(pageChoice_, &SegmentedControl::currentChanged, this, [this](int index) { showPage(Page(index)); });
    connect(axisChoice_, &SegmentedControl::currentChanged, this, [this] { refresh(); });
    connect(runningOnly_, &QCheckBox::toggled, this, &BatchingView::showRunning);
    connect(header(), &ViewHeader::tableToggled, this, &BatchingView::updateTwin);
    connect(twin(), &QTableView::activated, this, [this](const QModelIndex& index) {
        const FlatNode* node = twinModel()->node(index);
        if (node != nullptr && page() == SweepOfSlots && runInfo(static_cast<sessions::RunId>(node->key))) {
            document()->setRunA(static_cast<sessions::RunId>(node->key));
        }
    });
    connect(time_, &TimeCursor::rangeChanged, this, &BatchingView::updateCurves);
    connect(time_, &TimeCursor::cursorChanged, this, &BatchingView::updateReadout);
    connect(time_, &TimeCursor::cursorChanged, this, &BatchingView::shareCursor);
    connect(time_, &TimeCursor::cursorChanged, this, &BatchingView::updateRunning);
    if (context.time != nullptr) {
        RequestChoice* choice = &RequestChoice::of(context.time);
        connect(choice, &RequestChoice::changed, this, [this, choice] {
            if (pair_.a && choice->request() != request_) {
                chooseRequest(choice->request());
            }
        });
    }
    connect(time_, &TimeCursor::measuredChanged, this, &BatchingView::updateReadout);
    connect(time_, &TimeCursor::followingChanged, this, &View::availabilityChanged);
    showPage(Slots);
    followDocument();
}

BatchingView::~BatchingView() = default;

void BatchingView::buildBody() {
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, this);
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    legend_ = new LegendStrip(body);
    column->addWidget(legend_);
    pages_ = new QStackedWidget(body);
    column->addWidget(pages_, 1);
    buildLanes();
    sweepPage_ = new SweepPanel(context().runs, pages_);
    pages_->addWidget(lanes_);
    pages_->addWidget(sweepPage_);
    connect(sweepPage_, &SweepPanel::failed, this, [this](const QString& reason) { showError(reason); });
    connect(sweepPage_, &SweepPanel::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    setBody(body);
}

void BatchingView::buildLanes() {
    lanes_ = new LaneStack(time_, LaneStack::NoStrips, pages_);
    lanes_->setPacked();
    lanes_->setKeptOpen(4);
    for (const int side : {1, 0}) { // the baseline above
        const auto at = static_cast<std::size_t>(side);
        const QLatin1Char letter(side == 0 ? 'A' : 'B');
        slotLanes_[at] = new SlotLane(tr("Slots"), time_, lanes_);
        requestLanes_[at] = new RequestLane(tr("Requests"), time_, lanes_);
        for (BatchLane* lane : {static_cast<BatchLane*>(slotLanes_[at]), static_cast<BatchLane*>(requestLanes_[at])}) {
            lane->setBadge(letter);
            lanes_->addLane(lane);
            connectLane(lane, side);
        }
        connect(slotLanes_[at], &SlotLane::slotChosen, this, [this, side](qint32 slot) { chooseSlot(side, slot); });
    }
    for (const int side : {0, 1}) {
        connect(requestLanes_[static_cast<std::size_t>(side)], &RequestLane::scrolled, this, [this, side](int first) {
            if (!runningOnly_->isChecked()) { // else their rows are not the same requests
                requestLanes_[static_cast<std::size_t>(1 - side)]->setFirst(first);
            }
        });
    }
    ruler_ = lanes_->addRuler();
    const std::pair<CurveLane**, QString> curves[] = {{&rateLane_, tr("Generated tokens/s")},
                                                      {&queueLane_, tr("Queue depth")},
                                                      {&runningLane_, tr("Running requests")},
                                                      {&pageLane_, tr("KV pages in use")}};
    for (const auto& [lane, title] : curves) {
        *lane = new CurveLane(title, time_, lanes_);
        (*lane)->setPlotHeight(kCurveHeight, 1);
        lanes_->addLane(*lane);
        connect(*lane, &Lane::collapsedChanged, this, &BatchingView::updateRoom);
    }
    connect(lanes_, &LaneStack::hovered, this, &BatchingView::updateReadout);
}

void BatchingView::connectLane(BatchLane* lane, int) {
    connect(lane, &BatchLane::requestChosen, this, &BatchingView::chooseRequest);
    connect(lane, &BatchLane::pointed, this, [this](const QString& words) {
        pointed_ = words;
        updateReadout();
    });
}

void BatchingView::buildInspector() {
    panel_ = new BatchPanel;
    connect(panel_, &BatchPanel::partnerWanted, this, [this] {
        if (const sessions::RunId wanted = batchPartner(document()->runs(), runs_[0] != 0 ? runs_[0] : runs_[1]);
            wanted != 0) {
            runs_[0] != 0 ? document()->setRunB(wanted) : document()->setRunA(wanted);
        }
    });
    connect(panel_, &BatchPanel::readoutChanged, this, [this](const QString& text) { setReadout(text); });
}

QWidget* BatchingView::inspector() {
    return panel_;
}

QWidget* BatchingView::inspectorHeader() {
    return panel_->header();
}

} // namespace vitrine::ui

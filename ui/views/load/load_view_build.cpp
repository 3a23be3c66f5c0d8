// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Load view: lanes of both loads, overlay, bars, inspector.
#include <QHBoxLayout>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "ui/views/load/load_view.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/bar_plot.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/result_panel.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

void LoadView::buildBody() {
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, this);
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    legend_ = new LegendStrip(body);
    column->addWidget(legend_);
    pages_ = new QStackedWidget(body);
    auto* both = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    auto* lanes = new QVBoxLayout(both);
    lanes->setContentsMargins(0, 0, 0, 0);
    lanes->setSpacing(0);
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        Side& side = sides_[i];
        const QChar letter(static_cast<char16_t>(u'A' + i));
        side.time = new TimeCursor(this);
        side.stack = new LaneStack(side.time, LaneStack::NoStrips, both);
        side.lane = new LoadLane(tr("Load %1").arg(letter), side.time, side.stack);
        side.lane->setBadge(letter);
        side.lane->setPlotHeight(60, 1);
        side.spans = new SpanLane(tr("Stages of %1").arg(letter), side.time, side.stack);
        side.spans->setHeader(false);
        side.stack->addLane(side.lane);
        side.stack->addLane(side.spans);
        side.ruler = side.stack->addRuler();
        lanes->addWidget(side.stack, 1);
        connect(side.time, &TimeCursor::cursorChanged, this, &LoadView::updateReadout);
    }
    pages_->addWidget(both);
    overlay_ = new LaneStack(sides_[0].time, LaneStack::NoStrips, pages_);
    overlayLane_ = new CurveLane(tr("Device memory of both loads"), sides_[0].time, overlay_);
    overlayLane_->setPlotHeight(152, 1);
    overlay_->addLane(overlayLane_);
    overlay_->addRuler();
    pages_->addWidget(overlay_);
    column->addWidget(pages_, 1);

    barsHead_ = new Surface(Surface::Fill::Panel, Surface::Top, body);
    barsHead_->setFixedHeight(23);
    auto* head = new QHBoxLayout(barsHead_);
    head->setContentsMargins(12, 1, 12, 0);
    head->addWidget(new TextLabel(tr("Resident bytes by part"), TypeRole::Table, TextColor::Text1, true, barsHead_));
    barsFacts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, barsHead_);
    barsFacts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    head->addWidget(barsFacts_, 1);
    bars_ = new BarPlot(tr("Resident bytes by part"), body);
    connect(bars_, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    column->addWidget(barsHead_);
    column->addWidget(bars_);
    setBody(body);
}

void LoadView::buildInspector() {
    auto* panel = new ResultPanel;
    panel_ = panel;
    number_ = panel->number();
    sentence_ = panel->sentence();
    QWidget* content = panel->content();
    QVBoxLayout* column = panel->column();
    loadTable_ = new FactTable(tr("Load"), content);
    memoryTable_ = new FactTable(tr("Memory"), content);
    afterTable_ = new FactTable(tr("After the load"), content);
    for (FactTable* table : {loadTable_, memoryTable_, afterTable_}) {
        table->setNumberWidths({70, 66, 72}); // names of formats and "only A" need room
    }
    agreementTable_ = new FactTable(tr("Agreement"), content);
    agreementTable_->setNumberWidth(150);
    qualityTable_ = new FactTable(tr("Quality of the weights"), content);
    qualityTable_->hide();
    for (FactTable* table : {loadTable_, memoryTable_, afterTable_, qualityTable_, agreementTable_}) {
        column->addWidget(table);
    }
    costHead_ = new Surface(Surface::Fill::Panel, Surface::Top | Surface::Bottom, content);
    costHead_->setFixedHeight(25);
    auto* head = new QHBoxLayout(costHead_);
    head->setContentsMargins(12, 0, 12, 0);
    head->addWidget(new TextLabel(tr("What it costs"), TypeRole::Table, TextColor::Text1, true, costHead_));
    cost_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, content);
    cost_->setWordWrap(true);
    cost_->setContentsMargins(12, 8, 12, 12);
    column->addWidget(costHead_);
    column->addWidget(cost_);
    column->addStretch(1);
    panelHeader_ = new DockHeader(tr("Result"));
    panelFacts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, panelHeader_);
    panelHeader_->addControl(panelFacts_);
}

} // namespace vitrine::ui

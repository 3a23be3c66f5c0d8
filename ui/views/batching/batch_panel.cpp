// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/batching/batch_panel.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/models/batching/batch_tables.h"
#include "ui/views/batching/batch_plots.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kSharesLeast = 130, kSharesMost = 260;

/// Letters of the tables' columns: a run that stands alone has no other beside it.
QString badges(const BatchPair& pair) {
    return pair.a && pair.b ? QStringLiteral(" AB ") : pair.a ? QStringLiteral(" A") : QStringLiteral(" B");
}

} // namespace

BatchPanel::BatchPanel() {
    QWidget* content = this->content();
    QVBoxLayout* column = this->column();
    detail_ = new FactTable(tr("The chosen request or slot"), content);
    detail_->setNumberWidth(96);
    detail_->hide();
    partner_ = new QPushButton(content);
    auto* partnerRow = new QHBoxLayout;
    partnerRow->setContentsMargins(12, 0, 12, 10);
    partnerRow->addWidget(partner_);
    partnerRow->addStretch(1);
    connect(partner_, &QPushButton::clicked, this, &BatchPanel::partnerWanted);
    throughput_ = new FactTable(tr("Throughput"), content);
    latency_ = new FactTable(tr("Latency"), content);
    for (FactTable* table : {throughput_, latency_}) {
        table->setNumberWidth(72);
    }
    sharesHead_ = new Surface(Surface::Fill::Panel, Surface::Top, content);
    sharesHead_->setFixedHeight(25);
    auto* head = new QHBoxLayout(sharesHead_);
    head->setContentsMargins(12, 0, 12, 0);
    head->addWidget(
        new TextLabel(tr("End to end, share of requests done"), TypeRole::Table, TextColor::Text1, true, sharesHead_));
    shares_ = new Chart(tr("End to end, share of requests done"), content);
    shares_->setMinimumHeight(kSharesLeast);
    shares_->setMaximumHeight(kSharesMost);
    connect(shares_, &PlotWidget::readoutChanged, this, &BatchPanel::readoutChanged);
    column->insertWidget(0, detail_);
    column->addLayout(partnerRow);
    column->addWidget(throughput_);
    column->addWidget(latency_);
    column->addWidget(sharesHead_);
    column->addWidget(shares_, 1);
    column->addStretch(0);
    header_ = new DockHeader(tr("Result"));
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header_);
    header_->addControl(facts_);
}

void BatchPanel::setPair(const BatchPair& pair, const QString& facts) {
    const BatchText words = batchText(pair);
    number()->setText(words.number);
    sentence()->setText(words.sentence);
    throughput_->setTable(batchThroughputTable(pair), badges(pair));
    latency_->setTable(batchLatencyTable(pair), badges(pair));
    throughput_->setVisible(pair.a || pair.b);
    const bool any = (pair.a && !pair.a->latencies.endToEnd.empty()) || (pair.b && !pair.b->latencies.endToEnd.empty());
    latency_->setVisible(any);
    sharesHead_->setVisible(any);
    shares_->setVisible(any);
    if (any) {
        showShares(*shares_, pair);
    }
    facts_->setText(facts);
}

void BatchPanel::setPartner(const QString& name) {
    partner_->setVisible(!name.isEmpty());
    if (!name.isEmpty()) {
        partner_->setText(tr("Compare with %1").arg(name));
    }
}

void BatchPanel::setChoice(const BatchPair& pair, std::int32_t request, std::int32_t slot, int slotSide) {
    const BatchSidePtr& side = slotSide == 0 ? pair.a : pair.b;
    const FlatTreePtr table = request >= 0        ? batchRequestTable(pair, request)
                              : slot >= 0 && side ? batchSlotTable(*side, slot)
                                                  : nullptr;
    detail_->setVisible(table != nullptr);
    if (table) {
        detail_->setTable(table, request >= 0 ? badges(pair) : QString());
    }
}

QString BatchPanel::asText() const {
    QStringList parts{number()->text() + QLatin1Char(' ') + sentence()->text(), throughput_->asText(),
                      latency_->asText()};
    if (detail_->isVisibleTo(this)) {
        parts << detail_->asText();
    }
    return parts.join(QStringLiteral("\n\n"));
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What stands beside the plots of the Batching view: choices of traces and partners, the inspector, the sweep and the table.
#include <QComboBox>
#include <QPushButton>
#include <QScrollArea>
#include <QTableView>
#include <algorithm>

#include "ui/models/batching/batch_tables.h"
#include "ui/models/session/run_facts.h"
#include "ui/views/batching/batch_plots.h"
#include "ui/views/batching/batching_view.h"
#include "ui/views/batching/sweep_page.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

using sessions::RunInfo;

void BatchingView::updatePartner() {
    const bool alone = (runs_[0] == 0) != (runs_[1] == 0) && document() != nullptr;
    const sessions::RunId self = runs_[0] != 0 ? runs_[0] : runs_[1];
    const sessions::RunId other = alone ? batchPartner(document()->runs(), self) : 0;
    const RunInfo* run = runInfo(other);
    partner_->setVisible(run != nullptr);
    if (run != nullptr) {
        partner_->setText(tr("Compare with %1").arg(QString::fromStdString(run->name)));
    }
}

/// The traces of the session; that of A (else B) is the chosen one.
void BatchingView::updateTraces() {
    const RunInfo* shown = runInfo(runs_[0] != 0 ? runs_[0] : runs_[1]);
    const QSignalBlocker quiet(traceChoice_);
    traceChoice_->clear();
    int chosen = -1;
    for (const sessions::RunId id :
         document() != nullptr ? batchTraces(document()->runs()) : std::vector<sessions::RunId>()) {
        const RunInfo* run = runInfo(id);
        const QString words = traceWords(*run);
        const QString model = runFacts(*run).model;
        traceChoice_->addItem(words.isEmpty() ? tr("requests over HTTP, %1").arg(model) : words,
                              QVariant::fromValue<qlonglong>(id));
        traceChoice_->setItemData(traceChoice_->count() - 1, model, Qt::ToolTipRole);
        if (shown != nullptr && sameBatchTrace(*run, *shown)) {
            chosen = traceChoice_->count() - 1;
        }
    }
    traceChoice_->setCurrentIndex(chosen);
    traceChoice_->setEnabled(traceChoice_->count() > 0);
}

void BatchingView::chooseTrace(int index) {
    const auto run = static_cast<sessions::RunId>(traceChoice_->itemData(index).toLongLong());
    if (runInfo(run) == nullptr) {
        return;
    }
    document()->setRunA(run);
    document()->setRunB(batchPartner(document()->runs(), run));
}

void BatchingView::updateInspector() {
    const BatchWords words = batchWords(pair_);
    number_->setText(words.number);
    sentence_->setText(words.sentence);
    updatePartner();
    throughput_->setTable(batchThroughputTable(pair_), badges());
    latency_->setTable(batchLatencyTable(pair_), badges());
    throughput_->setVisible(pair_.a || pair_.b);
    const bool any =
        (pair_.a && !pair_.a->latencies.endToEnd.empty()) || (pair_.b && !pair_.b->latencies.endToEnd.empty());
    latency_->setVisible(any);
    sharesHead_->setVisible(any);
    shares_->setVisible(any);
    if (any) {
        showShares(*shares_, pair_);
    }
    const RunInfo* run = runInfo(runs_[0] != 0 ? runs_[0] : runs_[1]);
    const RunFacts facts = run != nullptr ? runFacts(*run) : RunFacts();
    panelFacts_->setText(facts.virtualTime ? tr("predicted, %1").arg(facts.device) : facts.device);
    updateDetail();
}

/// Letters of the tables' columns: a run that stands alone has no other beside it.
QString BatchingView::badges() const {
    return pair_.a && pair_.b ? QStringLiteral(" AB ") : pair_.a ? QStringLiteral(" A") : QStringLiteral(" B");
}

void BatchingView::updateDetail() {
    const BatchSidePtr& side = slotSide_ == 0 ? pair_.a : pair_.b;
    const FlatTreePtr table = request_ >= 0        ? batchRequestTable(pair_, request_)
                              : slot_ >= 0 && side ? batchSlotTable(*side, slot_)
                                                   : nullptr;
    detail_->setVisible(table != nullptr);
    if (table) {
        detail_->setTable(table, request_ >= 0 ? badges() : QString());
    }
}

void BatchingView::updateSweep() {
    if (document() == nullptr || page() != SweepOfSlots) {
        return;
    }
    sweep_ = batchSweep(document()->runs(), runs_[0], runs_[1]);
    sweepPage_->setSweep(sweep_);
    std::int32_t fewest = 0, most = 0;
    for (const SweepSeries& series : sweep_.series) {
        for (const SweepPoint& point : series.points) {
            fewest = fewest == 0 ? point.slotCount : std::min(fewest, point.slotCount);
            most = std::max(most, point.slotCount);
        }
    }
    const RunInfo* run = runInfo(runs_[0] != 0 ? runs_[0] : runs_[1]);
    sweepPage_->setSource(run != nullptr ? std::optional(*run) : std::nullopt, document()->path());
    sweepPage_->setEmpty(
        run == nullptr || most > fewest
            ? QString()
            : tr("This trace ran with one number of slots so far. Run the sweep to see what slots buy."));
}

void BatchingView::updateTwin() {
    if (!header()->tableShown()) {
        return;
    }
    twinModel()->setTree(page() == SweepOfSlots ? sweepTable(sweep_)
                         : page() == Requests   ? requestTwin(pair_)
                                                : slotTwin(pair_));
    twin()->resizeColumnsToContents();
}

} // namespace vitrine::ui

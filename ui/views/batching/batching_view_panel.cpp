// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What stands beside the plots of the Batching view: choices of traces, the sweep and the table.
#include <QComboBox>
#include <QTableView>
#include <algorithm>

#include "ui/models/batching/batch_tables.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/batching/batch_panel.h"
#include "ui/views/batching/batch_plots.h"
#include "ui/views/batching/batching_view.h"
#include "ui/views/batching/sweep_panel.h"

namespace vitrine::ui {

using sessions::RunInfo;

/// The traces of the session; that of A (else B) is the chosen one.
void BatchingView::updateTraces() {
    const RunInfo* shown = runInfo(runs_[0] != 0 ? runs_[0] : runs_[1]);
    const QSignalBlocker quiet(traceChoice_);
    traceChoice_->clear();
    int chosen = -1;
    for (const sessions::RunId id :
         document() != nullptr ? batchTraces(document()->runs()) : std::vector<sessions::RunId>()) {
        const RunInfo* run = runInfo(id);
        const QString words = traceText(*run);
        const QString model = runSummary(*run).model;
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
    const sessions::RunId self = runs_[0] != 0 ? runs_[0] : runs_[1];
    const RunInfo* run = runInfo(self);
    const RunSummary facts = run != nullptr ? runSummary(*run) : RunSummary();
    panel_->setPair(pair_, facts.virtualTime ? tr("predicted, %1").arg(facts.device) : facts.device);
    const bool alone = (runs_[0] == 0) != (runs_[1] == 0) && document() != nullptr;
    const RunInfo* partner = runInfo(alone ? batchPartner(document()->runs(), self) : 0);
    panel_->setPartner(partner != nullptr ? QString::fromStdString(partner->name) : QString());
    updateDetail();
}

void BatchingView::updateDetail() {
    panel_->setChoice(pair_, request_, slot_, slotSide_);
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

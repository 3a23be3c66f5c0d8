// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/step_panel.h"

#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

StepPanel::StepPanel() : header_(new DockHeader(tr("Result"))) {
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header_);
    header_->addControl(facts_);
    number()->setContentsMargins(12, 8, 12, 0);
    sentence()->setContentsMargins(12, 0, 12, 10);
    peaks_ = new FactTable(tr("Peak of the phase"), content());
    times_ = new FactTable(tr("Time of the phase"), content());
    categories_ = new FactTable(tr("At each peak"), content());
    offloadHeader_ = new DockHeader(tr("Offload"));
    whose_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, offloadHeader_);
    offloadHeader_->addControl(whose_);
    offload_ = new FactTable(tr("Offload"), content());
    agreementHeader_ = new DockHeader(tr("Agreement"));
    auto* both = new TextLabel(tr("A and B"), TypeRole::Table, TextColor::Text3, false, agreementHeader_);
    agreementHeader_->addControl(both);
    agreement_ = new FactTable(tr("Agreement"), content());
    for (FactTable* table : {peaks_, times_, categories_}) {
        table->setNumberWidths({64, 64, 90});
    }
    for (FactTable* table : {offload_, agreement_}) {
        table->setNumberWidth(170);
    }
    for (QWidget* part :
         {static_cast<QWidget*>(peaks_), static_cast<QWidget*>(times_), static_cast<QWidget*>(categories_),
          static_cast<QWidget*>(offloadHeader_), static_cast<QWidget*>(offload_),
          static_cast<QWidget*>(agreementHeader_), static_cast<QWidget*>(agreement_)}) {
        column()->addWidget(part);
    }
    column()->addStretch(1);
    setPair(nullptr, std::nullopt);
}

void StepPanel::setPair(const StepPairPtr& pair, const std::optional<StepAdvice>& advice) {
    const StepResultText result = pair != nullptr ? stepResult(*pair) : StepResultText{};
    number()->setText(result.number);
    sentence()->setText(result.sentence);
    facts_->setText(pair == nullptr ? QString()
                    : !pair->b      ? tr("step %1").arg(countText(pair->a.values.step))
                    : pair->b->values.step == pair->a.values.step
                        ? tr("step %1 of both").arg(countText(pair->a.values.step))
                        : tr("step %1, of B %2").arg(countText(pair->a.values.step), countText(pair->b->values.step)));
    for (FactTable* table : {peaks_, times_, categories_}) {
        table->setVisible(pair != nullptr);
    }
    const FlatTreePtr offload = pair != nullptr ? offloadTable(*pair, advice) : std::make_shared<FlatTree>();
    const FlatTreePtr agreement = pair != nullptr ? agreementTable(*pair) : std::make_shared<FlatTree>();
    if (pair != nullptr) {
        const QString badges = pair->b ? QStringLiteral(" AB ") : QStringLiteral(" A");
        peaks_->setTable(phasePeakTable(*pair), badges);
        times_->setTable(phaseTimeTable(*pair), badges);
        categories_->setTable(peakCategoryTable(*pair), badges);
        offload_->setTable(offload);
        agreement_->setTable(agreement);
        whose_->setText(pair->b && pair->a.anatomy.copies.empty() != pair->b->anatomy.copies.empty()
                            ? (pair->a.anatomy.copies.empty() ? tr("B only") : tr("A only"))
                            : QString());
    }
    offloadHeader_->setVisible(!offload->nodes.empty());
    offload_->setVisible(!offload->nodes.empty());
    agreementHeader_->setVisible(!agreement->nodes.empty());
    agreement_->setVisible(!agreement->nodes.empty());
}

QString StepPanel::asText() const {
    QStringList parts{number()->text() + QLatin1Char(' ') + sentence()->text(), peaks_->asText(), times_->asText(),
                      categories_->asText()};
    for (const FactTable* table : {offload_, agreement_}) {
        if (!table->model()->tree().nodes.empty()) {
            parts << table->asText();
        }
    }
    return parts.join(QStringLiteral("\n\n"));
}

} // namespace vitrine::ui

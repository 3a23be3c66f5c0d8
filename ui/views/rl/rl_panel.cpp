// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_panel.h"

#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

RlPanel::RlPanel() : header_(new DockHeader(tr("Step"))) {
    which_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header_);
    header_->addControl(which_);
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, this);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    figures_ = new FactTable(tr("Figures of the step"), content);
    figures_->setNumberWidths({72, 72, 84});
    column->addWidget(figures_);
    column->addStretch(1);
    setWidget(content);
    setStep({}, false);
}

void RlPanel::setStep(const RlStepPair& pair, bool chosen) {
    const bool any = pair.i || pair.j;
    header_->setTitle(any ? tr("Step %1").arg(countText(pair.number())) : tr("Step"));
    which_->setText(!any ? QString() : chosen ? tr("under the cursor") : tr("the last one"));
    figures_->setVisible(any);
    if (any) {
        figures_->setTable(rlFigureTable(pair), pair.b != nullptr ? QStringLiteral(" AB ") : QStringLiteral(" A"));
    }
}

QString RlPanel::asText() const {
    return figures_->isHidden() ? QString() : figures_->asText();
}

} // namespace vitrine::ui

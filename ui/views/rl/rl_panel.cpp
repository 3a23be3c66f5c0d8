// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_panel.h"

#include <QPushButton>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/views/rl/rl_answer_box.h"
#include "ui/views/rl/rl_group_box.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kFigureRow = 22;

} // namespace

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
    figures_->setRowHeight(kFigureRow);
    samplesHeader_ = new DockHeader(tr("Samples"), content);
    previous_ = iconButton(QStringLiteral("chevron-left"), tr("Previous group"), samplesHeader_);
    place_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, samplesHeader_);
    next_ = iconButton(QStringLiteral("chevron-right"), tr("Next group"), samplesHeader_);
    for (QWidget* control :
         {static_cast<QWidget*>(previous_), static_cast<QWidget*>(place_), static_cast<QWidget*>(next_)}) {
        samplesHeader_->addControl(control);
    }
    nothing_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, content);
    nothing_->setWordWrap(true);
    nothing_->setContentsMargins(12, 8, 12, 8);
    group_ = new RlGroupBox(false, content);
    column->addWidget(figures_);
    column->addWidget(samplesHeader_);
    column->addWidget(nothing_);
    column->addWidget(group_, 1);
    column->addStretch(0);
    setWidget(content);
    connect(previous_, &QPushButton::clicked, this, [this] { emit groupWanted(-1); });
    connect(next_, &QPushButton::clicked, this, [this] { emit groupWanted(1); });
    connect(group_, &RlGroupBox::answerOpened, this, &RlPanel::samplesWanted);
    setStep({}, false);
    setSamples(nullptr, 0, 0, {});
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

void RlPanel::setSamples(const RlSamplesPtr& samples, std::size_t group, std::size_t place, const QString& nothing) {
    const bool any = samples != nullptr && group < samples->groups.size();
    nothing_->setText(nothing);
    nothing_->setVisible(!any && !nothing.isEmpty());
    previous_->setVisible(any);
    next_->setVisible(any);
    place_->setVisible(any);
    if (any) {
        place_->setText(tr("group %1 of %2")
                            .arg(countText(samples->groups[group].number + 1),
                                 countText(static_cast<qint64>(samples->groups.size()))));
        previous_->setEnabled(place > 0);
        next_->setEnabled(place + 1 < samples->groups.size());
    }
    group_->setGroup(samples, group);
}

QString RlPanel::samplesText() const {
    return place_->isHidden() ? nothing_->text() : place_->text();
}

QString RlPanel::asText() const {
    if (figures_->isHidden()) {
        return {};
    }
    return group_->isHidden() ? figures_->asText()
                              : figures_->asText() + QStringLiteral("\n\n") + group_->table()->asText();
}

} // namespace vitrine::ui

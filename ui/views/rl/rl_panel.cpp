// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_panel.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/views/rl/rl_answer_box.h"
#include "ui/views/rl/rl_group_box.h"
#include "ui/widgets/base/inspector_column.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kFigureRow = 22, kPairFigureRow = 18; ///< the lower where answers of two runs are below
constexpr int kTallPanel = 860;
constexpr int kWidePanel = 620; ///< from which on it lies below the view

FactTable* figureTable(const QString& name, QWidget* parent) {
    auto* out = new FactTable(name, parent);
    out->setNumberWidths({72, 72, 84});
    return out;
}

/// The rows [first, last) of a table.
FlatTreePtr rowsOf(const FlatTree& table, std::size_t first, std::size_t last) {
    auto out = std::make_shared<FlatTree>();
    out->columns = table.columns;
    out->nodes.assign(table.nodes.begin() + static_cast<std::ptrdiff_t>(first),
                      table.nodes.begin() + static_cast<std::ptrdiff_t>(last));
    return out;
}

} // namespace

RlPanel::RlPanel() : header_(new DockHeader(tr("Step"))) {
    which_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header_);
    header_->addControl(which_);
    tabs_ = new SegmentedControl({tr("Step"), tr("Samples")}, header_);
    header_->addControl(tabs_);
    tabs_->hide();
    QVBoxLayout* column = inspectorColumn(this);
    QWidget* content = column->parentWidget();
    figures_ = figureTable(tr("Figures of the step"), content);
    samplesPart_ = new QWidget(content);
    auto* samples = new QVBoxLayout(samplesPart_);
    samples->setContentsMargins(0, 0, 0, 0);
    samples->setSpacing(0);
    samplesHeader_ = new DockHeader(tr("Samples"), samplesPart_);
    previous_ = iconButton(QStringLiteral("chevron-left"), tr("Previous group"), samplesHeader_);
    place_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, samplesHeader_);
    next_ = iconButton(QStringLiteral("chevron-right"), tr("Next group"), samplesHeader_);
    for (QWidget* control :
         {static_cast<QWidget*>(previous_), static_cast<QWidget*>(place_), static_cast<QWidget*>(next_)}) {
        samplesHeader_->addControl(control);
    }
    nothing_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, samplesPart_);
    nothing_->setWordWrap(true);
    nothing_->setContentsMargins(12, 8, 12, 8);
    goTo_ = new QPushButton(samplesPart_);
    setControlHeight(goTo_, 22);
    goingPart_ = new QWidget(samplesPart_); // takes no room where there is nowhere to go
    auto* going = new QHBoxLayout(goingPart_);
    going->setContentsMargins(12, 4, 12, 4);
    going->addWidget(goTo_);
    going->addStretch(1);
    group_ = new RlGroupBox(false, samplesPart_);
    samples->addWidget(samplesHeader_);
    samples->addWidget(nothing_);
    samples->addWidget(goingPart_);
    samples->addWidget(group_, 1);
    figuresPart_ = new QWidget(content);
    auto* beside = new QHBoxLayout(figuresPart_);
    beside->setContentsMargins(0, 0, 0, 0);
    beside->setSpacing(24);
    more_ = figureTable(tr("More figures of the step"), figuresPart_);
    beside->addWidget(figures_, 1, Qt::AlignTop);
    beside->addWidget(more_, 1, Qt::AlignTop);
    column->addWidget(figuresPart_);
    column->addWidget(samplesPart_, 1);
    column->addStretch(0);
    connect(previous_, &QPushButton::clicked, this, [this] { emit groupWanted(-1); });
    connect(next_, &QPushButton::clicked, this, [this] { emit groupWanted(1); });
    connect(group_, &RlGroupBox::answerOpened, this, &RlPanel::samplesWanted);
    connect(goTo_, &QPushButton::clicked, this, [this] {
        if (otherStep_) {
            emit stepWanted(*otherStep_);
        }
    });
    connect(tabs_, &SegmentedControl::currentChanged, this, &RlPanel::showTab);
    setOtherStep({});
    setStep({}, false);
    setSamples({}, 0, 0, {});
}

void RlPanel::setStep(const RlStepPair& pair, bool chosen) {
    const bool any = any_ = pair.i || pair.j;
    header_->setTitle(any ? tr("Step %1").arg(countText(pair.number())) : tr("Step"));
    which_->setText(!any ? QString() : chosen ? tr("under the cursor") : tr("the last one"));
    showTab();
    if (any) {
        table_ = rlFigureTable(pair);
        showFigures(pair.b != nullptr);
    }
}

void RlPanel::setMeans(const FlatTreePtr& means, std::int64_t first, std::int64_t last, bool both) {
    header_->setTitle(tr("Steps %1 to %2").arg(countText(first), countText(last)));
    which_->setText(tr("means"));
    table_ = means;
    showFigures(both);
}

/// Below the view in two halves side by side, which need no scrolling.
void RlPanel::showFigures(bool both) {
    both_ = both;
    if (table_ == nullptr) {
        return;
    }
    const int row = both && !wide_ ? kPairFigureRow : kFigureRow;
    figures_->setRowHeight(row);
    more_->setRowHeight(row);
    const QString badges = both ? QStringLiteral(" AB ") : QStringLiteral(" A");
    const std::size_t rows = table_->nodes.size(), half = wide_ ? (rows + 1) / 2 : rows;
    figures_->setTable(rowsOf(*table_, 0, half), badges);
    more_->setTable(rowsOf(*table_, half, rows), badges);
    more_->setVisible(half < rows);
}

void RlPanel::setOtherStep(std::optional<std::int64_t> step) {
    otherStep_ = step;
    goingPart_->setVisible(step.has_value());
    goTo_->setText(step ? tr("Go to step %1").arg(countText(*step)) : QString());
    goTo_->setToolTip(tr("The nearest step whose answers were kept with their tokens"));
}

/// Below the view, figures and answers are two tabs; beside it they stand under each other.
void RlPanel::showTab() {
    tabs_->setVisible(wide_);
    figuresPart_->setVisible(any_ && (!wide_ || tabs_->current() == 0));
    samplesPart_->setVisible(!wide_ || tabs_->current() == 1);
}

void RlPanel::resizeEvent(QResizeEvent* event) {
    QScrollArea::resizeEvent(event);
    group_->setTall(height() >= kTallPanel);
    if (const bool wide = width() >= kWidePanel; wide != wide_) {
        wide_ = wide;
        group_->setWide(wide);
        showFigures(both_);
        showTab();
    }
}

void RlPanel::setSamples(const RlGroupPair& pair, std::size_t place, std::size_t of, const QString& nothing) {
    const RlSampleGroup* group = pair.any();
    const bool any = group != nullptr;
    nothing_->setText(nothing);
    nothing_->setVisible(!any && !nothing.isEmpty());
    previous_->setVisible(any);
    next_->setVisible(any);
    place_->setVisible(any);
    if (any) {
        place_->setText(tr("group %1 of %2").arg(countText(group->number + 1), countText(static_cast<qint64>(of))));
        previous_->setEnabled(place > 0);
        next_->setEnabled(place + 1 < of);
    }
    group_->setGroups(pair);
}

QString RlPanel::samplesText() const {
    return place_->isHidden() ? nothing_->text() : place_->text();
}

QString RlPanel::asText() const {
    if (!any_ || table_ == nullptr) {
        return {};
    }
    return group_->isHidden() ? asMarkdown(*table_)
                              : asMarkdown(*table_) + QStringLiteral("\n\n") + group_->table()->asText();
}

} // namespace vitrine::ui

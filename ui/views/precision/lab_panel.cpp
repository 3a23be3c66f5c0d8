// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/lab_panel.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/views/planner/plan_tabs.h"
#include "ui/views/precision/keep_panel.h"
#include "ui/views/precision/lab_head.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/expert_strip.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

QVBoxLayout* panelColumn(QWidget* parent) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

} // namespace

QWidget* LabPanel::buildFigures(QWidget* parent) {
    auto* figures = new QWidget(parent);
    auto* row = new QHBoxLayout(figures);
    row->setContentsMargins(12, 8, 12, 8);
    const auto figure = [&](TextLabel*& number, TextLabel*& name) {
        auto* lines = new QVBoxLayout;
        lines->setSpacing(0);
        number = new TextLabel({}, TypeRole::Sentence, TextColor::Text1, false, figures);
        name = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, figures);
        name->setElide(true);
        lines->addWidget(number);
        lines->addWidget(name);
        row->addLayout(lines, 1);
    };
    figure(ratio_, ratioName_);
    figure(bytes_, bytesName_);
    return figures;
}

LabPanel::LabPanel(QObject* owner) : QObject(owner) {
    panel_ = new QScrollArea;
    panel_->setFrameShape(QFrame::NoFrame);
    panel_->setWidgetResizable(true);
    panel_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, panel_);
    QVBoxLayout* column = panelColumn(content);
    auto *tensor = new QWidget(content), *choice = new QWidget(content), *keep = new QWidget(content),
         *place = new QWidget(content);
    QVBoxLayout* tensorColumn = panelColumn(tensor);
    tensorColumn->addWidget(buildFigures(tensor));
    expertHead_ = new LabHead(tr("SNR of the experts, dB"), tensor);
    experts_ = new ExpertStrip(tr("SNR of each expert"), tensor);
    tensorColumn->addWidget(expertHead_);
    tensorColumn->addWidget(experts_);
    pinHead_ = new LabHead(tr("Pinned"), tensor);
    pinTable_ = new FactTable(tr("The pinned tensor beside the shown one"), tensor);
    pinTable_->setNumberWidths({92, 92});
    tensorColumn->addWidget(pinHead_);
    tensorColumn->addWidget(pinTable_);
    QVBoxLayout* choiceColumn = panelColumn(choice);
    choiceHead_ = new LabHead(tr("This tensor in another format"), choice);
    choices_ = new FactTable(tr("This tensor in another format"), choice);
    choices_->setNumberWidths({48, 46, 54, 62});
    choiceColumn->addWidget(choiceHead_);
    choiceColumn->addWidget(choices_);
    QVBoxLayout* keepColumn = panelColumn(keep);
    keepHead_ = new LabHead(tr("Keep in BF16"), keep);
    keep_ = new KeepPanel(keep);
    effects_ = new QPushButton(tr("Measure what each role saves"), keep);
    setControlHeight(effects_, 24);
    auto* ask = new QHBoxLayout;
    ask->setContentsMargins(12, 0, 12, 8);
    ask->addWidget(effects_);
    ask->addStretch(1);
    keepColumn->addWidget(keepHead_);
    keepColumn->addWidget(keep_);
    keepColumn->addLayout(ask);
    QVBoxLayout* placeColumn = panelColumn(place);
    placeHead_ = new LabHead(tr("Where the error sits"), place);
    placeHead_->setFacts(tr("share of squared error"));
    places_ = new FactTable(tr("Where the error sits"), place);
    placeColumn->addWidget(placeHead_);
    placeColumn->addWidget(places_);
    for (QWidget* part : {tensor, choice, keep, place}) {
        column->addWidget(part);
    }
    column->addStretch(1);
    panel_->setWidget(content);
    content->hide(); // until there is something to say
    header_ = new DockHeader(tr("Tensor"));
    pin_ = iconButton(QStringLiteral("pin"), tr("Keep the figures of this tensor and group in view"), header_);
    pin_->setCheckable(true);
    header_->addControl(pin_);
    connect(pin_, &QPushButton::clicked, this, [this](bool on) {
        pinned_ = on ? shown_ : LabPin();
        updatePin();
    });
    copy_ = iconButton(QStringLiteral("copy"), tr("Copy what is known of this tensor"), header_);
    header_->addControl(copy_);
    connect(copy_, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(words_); });
    tabs_ = new PlanTabs({{tr("Tensor"), tensor}, {tr("Formats"), choice}, {tr("Keep"), keep}, {tr("Error"), place}},
                         panel_, header_);
}

void LabPanel::showFigures(const PrecisionDataPtr& data, std::size_t format, std::size_t weight) {
    const engine::WeightEffect& effect = data->result.effect(format, weight);
    const double ratio = weightError(data->result, ErrorMeasure::Snr, format, weight);
    ratio_->setText(std::isnan(ratio)   ? unknownText()
                    : std::isinf(ratio) ? tr("exact")
                                        : tr("%1 dB").arg(decimalText(ratio, 2)));
    ratioName_->setText(tr("SNR, %1").arg(QString::fromStdString(data->result.formats[format].title)));
    const std::uint64_t whole = data->result.effect(0, weight).bytes;
    bytes_->setText(bytesText(effect.kept ? whole : effect.bytes));
    bytesName_->setText(effect.kept ? tr("kept in BF16; %1 in the format").arg(bytesText(effect.bytes))
                                    : tr("of %1 in BF16").arg(bytesText(whole)));
}

void LabPanel::showPinnable(const LabPin& shown) {
    shown_ = shown;
    updatePin();
}

void LabPanel::unpin() {
    pinned_ = {};
    updatePin();
}

void LabPanel::updatePin() {
    const bool pins = pinned_.tensor != nullptr;
    pinHead_->setVisible(pins);
    pinTable_->setVisible(pins);
    pin_->setChecked(pins);
    pin_->setEnabled(pins || shown_.tensor != nullptr);
    pin_->setToolTip(pins ? tr("Unpin %1").arg(pinned_.title)
                          : tr("Keep the figures of this tensor and group in view"));
    if (pins) {
        pinHead_->setTitle(tr("Pinned: %1").arg(pinned_.title));
        pinTable_->setTable(ui::pinTable(shown_, pinned_));
    }
}

void LabPanel::clear() {
    panel_->widget()->hide();
    keep_->clear();
    header_->setTitle(tr("Tensor"));
}

void LabPanel::showWeight(const PrecisionDataPtr& data, std::size_t format, std::size_t weight,
                          const PrecisionCell& cell, const ErrorScale& scale) {
    panel_->widget()->show();
    const bool several = cell.weights.size() > 1 && format != 0; // BF16 is exact in all
    expertHead_->setVisible(several);
    experts_->setVisible(several);
    const std::vector<float> ratios = cellErrors(data->result, ErrorMeasure::Snr, format, cell);
    expertHead_->setTitle(tr("SNR of %1 experts, dB").arg(countText(static_cast<qint64>(ratios.size()))));
    const double mean = meanError(ErrorMeasure::Snr, ratios);
    expertHead_->setFacts(std::isfinite(mean) ? tr("cell %1").arg(decimalText(mean, 2)) : QString());
    const auto place = std::ranges::find(cell.weights, weight) - cell.weights.begin();
    experts_->setExperts(ratios, scale, static_cast<int>(place));
    tabs_->setTitle(weightTitle(data->result.weights[weight]));
    showFigures(data, format, weight);
}

void LabPanel::showTensor(const PrecisionTensor* tensor, const QString& title) {
    for (QWidget* part : std::initializer_list<QWidget*>{choiceHead_, choices_, placeHead_, places_}) {
        part->setVisible(tensor != nullptr);
    }
    copy_->setEnabled(tensor != nullptr);
    words_ = tensor != nullptr ? tensorMarkdown(*tensor, title) : QString();
    if (tensor != nullptr) {
        choices_->setTable(choiceTable(*tensor, title));
        places_->setTable(errorPlaceTable(tensor->detail));
    }
}

void LabPanel::showKeep(const PrecisionDataPtr& data, std::size_t format) {
    const bool shown = format != 0;
    keepHead_->setVisible(shown);
    keep_->setVisible(shown);
    if (!shown) {
        effects_->hide();
        return;
    }
    keep_->setRows(data, format);
    const bool effects = std::ranges::any_of(keep_->rows(), [](const KeepRow& row) { return row.klSaved.has_value(); });
    keepHead_->setFacts(effects ? tr("by KL saved a GiB") : QString());
    effects_->setVisible(!effects);
    keep_->measureButton()->setVisible(effects);
}

} // namespace vitrine::ui

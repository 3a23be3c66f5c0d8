// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the parts of the Precision lab show.
#include <QCheckBox>
#include <QTableView>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/precision/group_words.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/views/precision/format_delegate.h"
#include "ui/views/precision/lab_head.h"
#include "ui/views/precision/lab_panel.h"
#include "ui/views/precision/lab_text_pane.h"
#include "ui/views/precision/map_content.h"
#include "ui/views/precision/precision_view.h"
#include "ui/widgets/plots/group_grid.h"
#include "ui/widgets/plots/group_strip.h"
#include "ui/widgets/plots/histogram_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kNumberSteps = 6; ///< cells beyond so many steps have their number in them

} // namespace

void PrecisionView::updateAll() {
    if (!data_) {
        return;
    }
    updateMap();
    updateFormats();
    const engine::LabText& text = data_->result.text;
    textName_->setText(
        text.scored() > 0 ? tr("%1, %2 tokens")
                                .arg(QString::fromStdString(text.name), countText(static_cast<qint64>(text.ids.size())))
                          : QString());
    textPane_->setText(data_, a_, b_);
    panel_->showKeep(data_, a_);
    twinModel()->setTree(mapTable(data_->result, cells_, a_));
    twin()->resizeColumnsToContents();
    placeParts();
    setReadout(map_->spoken());
}

void PrecisionView::updateMap() {
    if (!data_) {
        return;
    }
    const ErrorScale& colours = scale();
    const double edge = valueOfError(measure(), colours.least + kNumberSteps * colours.width);
    // Other measures are no short numbers.
    numbers_->setVisible(measure() == ErrorMeasure::Snr);
    numbers_->setText(tr("Numbers below %1 dB").arg(decimalText(edge, 1)));
    static const char* const kTitles[] = {QT_TR_NOOP("Signal to noise of the weights, dB"),
                                          QT_TR_NOOP("Mean squared error of the weights"),
                                          QT_TR_NOOP("Cosine of the weights before and after")};
    mapHead_->setTitle(tr(kTitles[measures_->current()]));
    mapHead_->setScale(colours);
    const bool experts = expertsShown() && weight_;
    HeatMapContent content =
        experts ? expertContent(data_, cells_, colours, a_, roleOf(*weight_)) : roleContent(data_, cells_, colours, a_);
    const bool kept = std::ranges::find(content.kept, 1) != content.kept.end();
    const KnownErrors errors = knownErrors(data_->result, a_);
    mapHead_->setFacts(experts ? tr("experts of %1").arg(QString::fromStdString(data_->result.weights[*weight_].role))
                       : data_->live && a_ != 0 ? tr("%1 of %2 matrices in %3")
                                                      .arg(countText(static_cast<qint64>(errors.known)),
                                                           countText(static_cast<qint64>(errors.all)), formatTitle(a_))
                       : kept ? tr("hatched: kept in BF16")
                              : QString());
    if (measure() == ErrorMeasure::Snr && numbers_->isChecked()) {
        content.numbersFrom = edge;
    }
    map_->setContent(std::move(content));
    updateWeight();
}

void PrecisionView::updateWeight() {
    if (!data_ || !weight_) {
        map_->setSelected(std::nullopt);
        return;
    }
    const engine::LabWeight& weight = data_->result.weights[*weight_];
    const std::size_t role = roleOf(*weight_);
    if (role < cells_.roles.size() && weight.layer >= 0 && weight.layer < cells_.layers) {
        const PrecisionCell& cell = cells_.cell(role, weight.layer);
        const auto place = std::ranges::find(cell.weights, *weight_) - cell.weights.begin();
        map_->setSelected(
            HeatMap::Cell(expertsShown() ? static_cast<int>(place) : static_cast<int>(role), weight.layer));
        ErrorScale ratios;
        if (measure() == ErrorMeasure::Snr) {
            ratios = scale();
        }
        panel_->showWeight(data_, a_, *weight_, cell, ratios);
    }
    QString name = QString::fromStdString(weight.name);
    if (weight.expert >= 0 && !name.contains(QStringLiteral(".%1.").arg(weight.expert))) {
        name += tr("   expert %1").arg(weight.expert);
    }
    tensorHead_->setTitle(name);
}

void PrecisionView::clearTensor(const QString& why, bool alarming) {
    tensor_.reset();
    tensorHead_->setAlarming(alarming);
    tensorHead_->setFacts(why);
    histogram_->setHistogram(nullptr, {}, {});
    strip_->setGroups(nullptr);
    worstModel_->setTree(std::make_shared<FlatTree>());
    panel_->showTensor(nullptr, {});
    showGroup(nullptr);
}

void PrecisionView::takeTensor(const std::shared_ptr<const PrecisionTensor>& tensor) {
    if (!tensor->error.isEmpty()) {
        clearTensor(tensor->error, true);
        return;
    }
    tensor_ = tensor;
    const engine::TensorDetail& detail = tensor->detail;
    tensorHead_->setAlarming(false);
    tensorHead_->setFacts(tensorWords(detail));
    const QString a = formatTitle(a_).section(QLatin1Char(','), 0, 0);
    histogram_->setHistogram({tensor, &detail.histogram}, tr("A, %1").arg(a),
                             b_ == 0 ? tr("B, %1").arg(formatTitle(0)) : formatTitle(0));
    strip_->setGroups({tensor, &detail.groupRms});
    choosing_ = true;
    worstModel_->setTree(worstGroupTable(detail));
    choosing_ = false;
    panel_->showTensor(tensor.get(), formatTitle(a_));
    placeParts();
    showGroup(detail.groupRms.empty() ? nullptr
                                      : std::shared_ptr<const engine::GroupDetail>(tensor, &tensor->worstGroup));
}

void PrecisionView::showGroup(std::shared_ptr<const engine::GroupDetail> group) {
    group_ = std::move(group);
    grid_->setGroup(group_);
    groupHead_->setTitle(group_ ? groupTitle(*group_) : tr("Group"));
    groupHead_->setFacts(group_ ? groupScaleWords(*group_) : QString());
    strip_->setChosen(group_ ? group_->error.group : -1);
    choosing_ = true;
    const QModelIndex row = group_ ? worstModel_->indexOfKey(static_cast<quint64>(group_->error.group)) : QModelIndex();
    row.isValid() ? worst_->setCurrentIndex(row) : worst_->clearSelection();
    choosing_ = false;
    panel_->showPinnable(shownPin());
}

LabPin PrecisionView::shownPin() const {
    return tensor_ && weight_ ? LabPin{weightTitle(data_->result.weights[*weight_]), formatTitle(a_), tensor_, group_}
                              : LabPin();
}

void PrecisionView::updateFormats() {
    choosing_ = true;
    formatModel_->setTree(formatTable(*data_));
    formatLook_->setFormats(static_cast<int>(a_), static_cast<int>(b_));
    formats_->setCurrentIndex(formatModel_->index(static_cast<int>(a_), 0));
    choosing_ = false;
    formats_->viewport()->update();
    const QString device = QString::fromStdString(data_->device);
    formatHead_->setFacts(device.isEmpty() ? tr("whole model, batch 1") : tr("whole model, batch 1, %1").arg(device));
    keptNote_->setText(keptNote(data_->result));
}

} // namespace vitrine::ui

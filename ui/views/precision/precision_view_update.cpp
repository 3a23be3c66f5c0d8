// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the parts of the Precision lab show.
#include <QCheckBox>
#include <QPushButton>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>
#include <cmath>
#include <limits>

#include "ui/models/common/format.h"
#include "ui/models/precision/group_words.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/views/planner/plan_tabs.h"
#include "ui/views/precision/format_delegate.h"
#include "ui/views/precision/keep_panel.h"
#include "ui/views/precision/lab_head.h"
#include "ui/views/precision/precision_view.h"
#include "ui/views/precision/token_readout.h"
#include "ui/widgets/plots/expert_strip.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/group_grid.h"
#include "ui/widgets/plots/group_strip.h"
#include "ui/widgets/plots/histogram_lane.h"
#include "ui/widgets/plots/scored_text.h"

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
    updateText();
    updateKeep();
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
    HeatMapContent content;
    if (expertsShown() && weight_) {
        content = expertContent(roleOf(*weight_));
        mapHead_->setFacts(tr("experts of %1").arg(QString::fromStdString(data_->result.weights[*weight_].role)));
    } else {
        for (const std::string& role : cells_.roles) {
            content.rows.push_back(QString::fromStdString(role));
        }
        content.values = cellMeans(data_->result, cells_, measure(), a_);
        content.kept = keptCells(data_->result, cells_, a_);
        content.words = [this](int row, int column) {
            return cellWords(data_->result, cells_, measure(), a_, static_cast<std::size_t>(row), column);
        };
        const bool kept = std::ranges::find(content.kept, 1) != content.kept.end();
        mapHead_->setFacts(kept ? tr("hatched: kept in BF16") : QString());
    }
    content.columns = cells_.layers;
    content.scale = colours;
    if (measure() == ErrorMeasure::Snr && numbers_->isChecked()) {
        content.numbersFrom = edge;
    }
    map_->setContent(std::move(content));
    updateWeight();
}

HeatMapContent PrecisionView::expertContent(std::size_t role) {
    HeatMapContent content;
    const std::size_t experts = cells_.experts(role);
    for (std::size_t expert = 0; expert < experts; ++expert) {
        content.rows.push_back(QString::number(expert));
    }
    const auto layers = static_cast<std::size_t>(cells_.layers);
    content.values.assign(experts * layers, std::numeric_limits<float>::quiet_NaN());
    content.kept.assign(experts * layers, 0);
    for (int layer = 0; layer < cells_.layers; ++layer) {
        const PrecisionCell& cell = cells_.cell(role, layer);
        for (std::size_t expert = 0; expert < cell.weights.size(); ++expert) {
            const std::size_t at = expert * layers + static_cast<std::size_t>(layer);
            content.values[at] = weightError(data_->result, measure(), a_, cell.weights[expert]);
            content.kept[at] = a_ != 0 && data_->result.effect(a_, cell.weights[expert]).kept ? 1 : 0;
        }
    }
    content.words = [this, role](int row, int column) {
        const PrecisionCell& cell = cells_.cell(role, column);
        const auto expert = static_cast<std::size_t>(row);
        if (expert >= cell.weights.size()) {
            return cellWords(data_->result, cells_, measure(), a_, role, column);
        }
        const std::size_t weight = cell.weights[expert];
        return tr("%1: %2").arg(weightTitle(data_->result.weights[weight]),
                                scale().valueText(weightError(data_->result, measure(), a_, weight)));
    };
    return content;
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
        const bool several = cell.weights.size() > 1;
        expertHead_->setVisible(several);
        experts_->setVisible(several);
        const std::vector<float> ratios = cellErrors(data_->result, ErrorMeasure::Snr, a_, cell);
        expertHead_->setTitle(tr("SNR of %1 experts, dB").arg(countText(static_cast<qint64>(ratios.size()))));
        const double mean = meanError(ErrorMeasure::Snr, ratios);
        expertHead_->setFacts(std::isfinite(mean) ? tr("cell %1").arg(decimalText(mean, 2)) : QString());
        ErrorScale ratioScale;
        if (measure() == ErrorMeasure::Snr) {
            ratioScale = scale();
        }
        experts_->setExperts(ratios, ratioScale, static_cast<int>(place));
    }
    QString name = QString::fromStdString(weight.name);
    if (weight.expert >= 0 && !name.contains(QStringLiteral(".%1.").arg(weight.expert))) {
        name += tr("   expert %1").arg(weight.expert);
    }
    tensorHead_->setTitle(name);
    tabs_->setTitle(weightTitle(weight));
    updateFigures();
}

void PrecisionView::updateFigures() {
    const engine::WeightEffect& effect = data_->result.effect(a_, *weight_);
    const double ratio = weightError(data_->result, ErrorMeasure::Snr, a_, *weight_);
    ratio_->setText(std::isnan(ratio)   ? unknownText()
                    : std::isinf(ratio) ? tr("exact")
                                        : tr("%1 dB").arg(decimalText(ratio, 2)));
    ratioName_->setText(tr("SNR, %1").arg(formatTitle(a_)));
    const std::uint64_t whole = data_->result.effect(0, *weight_).bytes;
    bytes_->setText(bytesText(effect.kept ? whole : effect.bytes));
    bytesName_->setText(effect.kept ? tr("kept in BF16; %1 in the format").arg(bytesText(effect.bytes))
                                    : tr("of %1 in BF16").arg(bytesText(whole)));
}

void PrecisionView::clearTensor(const QString& why, bool alarming) {
    tensor_.reset();
    tensorHead_->setAlarming(alarming);
    tensorHead_->setFacts(why);
    histogram_->setHistogram(nullptr, {}, {});
    strip_->setGroups(nullptr);
    worstModel_->setTree(std::make_shared<FlatTree>());
    choiceHead_->setVisible(false);
    choices_->setVisible(false);
    placeHead_->setVisible(false);
    places_->setVisible(false);
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
    choices_->setTable(choiceTable(*tensor, formatTitle(a_)));
    places_->setTable(errorPlaceTable(detail));
    for (QWidget* part : std::initializer_list<QWidget*>{choiceHead_, choices_, placeHead_, places_}) {
        part->setVisible(true);
    }
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

void PrecisionView::updateText() {
    const engine::LabText& text = data_->result.text;
    const bool scored = text.scored() > 0;
    textName_->setText(
        scored ? tr("%1, %2 tokens")
                     .arg(QString::fromStdString(text.name), countText(static_cast<qint64>(text.ids.size())))
               : QString());
    textPages_->setCurrentIndex(scored ? 0 : 1);
    if (!scored) {
        textHead_->setFacts({});
        notScored_->set(tr("Not scored."), tr("Score %1 tokens").arg(countText(kTokensToScore)),
                        [this] { wantScores(); });
        return;
    }
    std::vector<ScoredText::Token> tokens;
    tokens.reserve(text.ids.size());
    for (std::size_t i = 0; i < text.ids.size(); ++i) {
        tokens.push_back({QString::fromStdString(text.pieces[i]), tokenChange(data_->result, a_, b_, i)});
    }
    text_->setTokens(std::move(tokens), [this](int token) {
        const TokenWords words = tokenWords(data_->result, a_, b_, static_cast<std::size_t>(token));
        return tr("%1, %2: %3, %4, %5").arg(words.token, words.place, words.b, words.a, words.difference);
    });
    if (text_->currentToken() < 0) { // the place that has changed most is what one looks for
        int most = 1;
        for (std::size_t i = 1; i < text.ids.size(); ++i) {
            const auto change = [&](std::size_t token) { return std::abs(tokenChange(data_->result, a_, b_, token)); };
            most = change(i) > change(static_cast<std::size_t>(most)) ? static_cast<int>(i) : most;
        }
        text_->setCurrentToken(most);
    }
    showToken(text_->currentToken());
    updateTextFacts();
}

void PrecisionView::updateTextFacts() {
    if (!data_ || data_->result.text.scored() == 0) {
        return;
    }
    const auto [first, last] = text_->inView();
    textHead_->setFacts(
        tr("tokens %1 to %2 of %3")
            .arg(countText(first), countText(std::max(first, last - 1)), countText(text_->tokenCount())));
}

void PrecisionView::showToken(int token) {
    tokenReadout_->setWords(data_ && token >= 0 ? tokenWords(data_->result, a_, b_, static_cast<std::size_t>(token))
                                                : TokenWords());
}

void PrecisionView::updateKeep() {
    const bool shown = a_ != 0;
    keepHead_->setVisible(shown);
    keep_->setVisible(shown);
    if (!shown) {
        keepEffects_->hide();
        return;
    }
    keep_->setRows(data_, a_);
    const bool effects = std::ranges::any_of(keep_->rows(), [](const KeepRow& row) { return row.klSaved.has_value(); });
    keepHead_->setFacts(effects ? tr("by KL saved a GiB") : QString());
    keepEffects_->setVisible(!effects);
    keep_->measureButton()->setVisible(effects);
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kv_cache/kv_curve_page.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/views/kv_cache/kv_strips.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/step_strip.h"

namespace vitrine::ui {

namespace {

constexpr int kTitleHeight = 23, kMargin = 12, kRoundingHeight = 42, kPressureHeight = 92;
constexpr int kRoomForLimits = 430, kRoomForRounding = 560, kRoomForPressure = 680;

void setChart(Chart* chart, KvCurveChart curve) {
    chart->setAxes(std::move(curve.x), std::move(curve.y));
    chart->setSeries(std::move(curve.series));
    chart->setMarks(std::move(curve.marks));
    chart->setNotes(std::move(curve.notes));
}

void clear(Chart* chart) {
    chart->setSeries({});
    chart->setMarks({});
    chart->setNotes({});
    chart->setStops({}, {});
}

/// A title over a plot, with words at its right.
QWidget* titled(TextLabel* title, TextLabel* note, QWidget* content, QWidget* parent) {
    auto* box = new Surface(Surface::Fill::Canvas, Surface::Top, parent);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 1, 0, 0);
    column->setSpacing(0);
    auto* head = new Surface(Surface::Fill::Panel, Surface::None, box);
    head->setFixedHeight(kTitleHeight);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(kMargin, 0, kMargin, 0);
    row->addWidget(title);
    if (note != nullptr) {
        row->addWidget(note, 1);
    } else {
        row->addStretch(1);
    }
    column->addWidget(head);
    content->setParent(box);
    column->addWidget(content, 1);
    return box;
}

TextLabel* noteLabel(QWidget* parent) {
    auto* label = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, parent);
    label->setElide(true);
    label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    return label;
}

TextLabel* titleLabel(QWidget* parent) {
    return new TextLabel({}, TypeRole::Table, TextColor::Text1, true, parent);
}

} // namespace

KvCurvePage::KvCurvePage(QWidget* parent) : Surface(Fill::Canvas, None, parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    sentence_ = new TextLabel({}, TypeRole::Sentence, TextColor::Text1, false, this);
    sentence_->setWordWrap(true);
    sentence_->setTextFormat(Qt::MarkdownText);
    sentence_->setContentsMargins(kMargin, 10, kMargin, 2);
    second_ = new TextLabel({}, TypeRole::Body, TextColor::Text2, false, this);
    second_->setWordWrap(true);
    second_->setContentsMargins(kMargin, 0, kMargin, 10);
    column->addWidget(sentence_);
    column->addWidget(second_);
    legend_ = new LegendStrip(this);
    column->addWidget(legend_);
    column->addWidget(makeCurves(), 3);
    limits_ = new Chart(tr("How far the KV cache could grow"), this);
    TextLabel* limitTitle = titleLabel(this);
    limitTitle->setText(tr("How far it could go"));
    limitNote_ = noteLabel(this);
    limitBox_ = titled(limitTitle, limitNote_, limits_, this);
    column->addWidget(limitBox_, 2);
    pressure_ = new StepStrip(tr("Pages taken over time"), this);
    pressure_->setFixedHeight(kPressureHeight);
    TextLabel* pressureTitle = titleLabel(this);
    pressureTitle->setText(tr("Page pressure"));
    pressureNote_ = noteLabel(this);
    pressureBox_ = titled(pressureTitle, pressureNote_, pressure_, this);
    column->addWidget(pressureBox_);
    for (QWidget* box : {lensBox_, limitBox_, roundingBox_, lensRoundingBox_, pressureBox_}) {
        box->hide();
    }
    turnBand_->hide();
    for (StepStrip* strip : {turnBand_, rounding_, lensRounding_, pressure_}) {
        connect(strip, &PlotWidget::readoutChanged, this, &KvCurvePage::readoutChanged);
    }
    for (Chart* chart : {lens_, whole_, limits_}) {
        connect(chart, &PlotWidget::readoutChanged, this, &KvCurvePage::readoutChanged);
    }
}

QWidget* KvCurvePage::makeCurves() {
    auto* first = new QWidget(this);
    auto* row = new QHBoxLayout(first);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    lens_ = new Chart(tr("KV cache, the first tokens"), first);
    whole_ = new Chart(tr("KV cache, bytes against tokens"), first);
    lensTitle_ = titleLabel(this);
    wholeTitle_ = titleLabel(this);
    const auto edgesOf = [](Chart* chart) {
        return [chart] { return std::pair(chart->plotArea().left(), chart->plotArea().right()); };
    };
    turnBand_ = new StepStrip(tr("Prompt and answer"), first, edgesOf(whole_));
    turnBand_->setFixedHeight(StepStrip::kBandRow);
    rounding_ = new StepStrip(tr("Page rounding"), first, edgesOf(whole_));
    lensRounding_ = new StepStrip(tr("Page rounding of the first tokens"), first, edgesOf(lens_));
    for (StepStrip* strip : {rounding_, lensRounding_}) {
        strip->setFixedHeight(kRoundingHeight);
    }
    TextLabel* roundingTitle = titleLabel(this);
    roundingTitle->setText(tr("Page rounding: room without a token"));
    roundingNote_ = noteLabel(this);
    roundingBox_ = titled(roundingTitle, roundingNote_, rounding_, first);
    TextLabel* lensRoundingTitle = titleLabel(this);
    lensRoundingTitle->setText(tr("Page rounding"));
    lensRoundingBox_ = titled(lensRoundingTitle, nullptr, lensRounding_, first);
    const auto under = [](QWidget* band, Chart* chart, QWidget* strip, QWidget* parent) {
        auto* box = new QWidget(parent);
        auto* column = new QVBoxLayout(box);
        column->setContentsMargins(0, 0, 0, 0);
        column->setSpacing(0);
        if (band != nullptr) {
            column->addWidget(band);
        }
        column->addWidget(chart, 1);
        column->addWidget(strip);
        return box;
    };
    TextLabel* pages = noteLabel(this);
    pages->setText(tr("pages by the layout"));
    lensBox_ = titled(lensTitle_, pages, under(nullptr, lens_, lensRoundingBox_, first), first);
    row->addWidget(lensBox_, 1);
    row->addWidget(titled(wholeTitle_, nullptr, under(turnBand_, whole_, roundingBox_, first), first), 2);
    return first;
}

void KvCurvePage::updateStrips(const KvSummary& facts, const std::optional<KvRoom>& room, double lensEnd) {
    const double end = whole_->axisEnd();
    turnBand_->setData(kvTurnBand(facts, 0, end));
    rounding_->setData(kvRoundingStrip(facts, static_cast<double>(facts.maxTokens()), end));
    roundingNote_->setText(kvRoundingText(facts));
    lensRounding_->setData(lensEnd > 0 ? kvRoundingStrip(facts, lensEnd, lens_->axisEnd()) : StepStripData());
    pressure_->setData(kvPressureStrip(facts, room));
    pressureNote_->setText(kvPressureText(facts, room));
    fitHeight();
}

void KvCurvePage::fitHeight() {
    limitBox_->setVisible(limitsKnown_ && height() >= kRoomForLimits);
    turnBand_->setVisible(!turnBand_->data().bands.empty());
    roundingBox_->setVisible(!rounding_->data().steps.empty() && height() >= kRoomForRounding);
    lensRoundingBox_->setVisible(!lensRounding_->data().steps.empty() && height() >= kRoomForRounding);
    pressureBox_->setVisible(!pressure_->data().steps.empty() && height() >= kRoomForPressure);
}

void KvCurvePage::resizeEvent(QResizeEvent* event) {
    Surface::resizeEvent(event);
    fitHeight();
}

QList<QWidget*> KvCurvePage::stops() const {
    QList<QWidget*> all;
    if (!lensBox_->isHidden()) {
        all << lens_;
    }
    all << whole_;
    if (!limitBox_->isHidden()) {
        all << limits_;
    }
    return all;
}

void KvCurvePage::say(const KvSentences& words) {
    sentence_->setText(words.first);
    sentence_->setVisible(!words.first.isEmpty());
    second_->setText(words.second);
    second_->setVisible(!words.second.isEmpty());
}

void KvCurvePage::setLegend(const KvSummary& facts, KvCurveWidgets parts, bool dots) {
    const QString kept =
        facts.geometry && kvSlides(facts)
            ? tr("sliding layers keep %1 tokens of a sequence").arg(countText(facts.geometry->window() - 1))
            : QString();
    std::vector<LegendItem> items = kvLegend(facts, parts);
    if (!dots) {
        std::erase_if(items, [](const LegendItem& item) { return item.mark == LegendItem::Mark::Dot; });
    }
    legend_->setItems(std::move(items), kept);
}

void KvCurvePage::showTokens(const KvSummary& facts, const std::optional<KvRoom>& room, KvCurveWidgets parts) {
    say(kvSentences(facts, room));
    setLegend(facts, parts, !facts.planned);
    const double lensEnd = facts.empty() ? 0 : kvLensEnd(facts);
    lensBox_->setVisible(lensEnd > 0);
    const bool limits = !facts.empty() && facts.geometry && room && room->free() > 0;
    limitsKnown_ = limits;
    if (facts.empty()) {
        for (Chart* chart : {lens_, whole_, limits_}) {
            clear(chart);
        }
        updateStrips(facts, room, 0);
        return;
    }
    setChart(whole_, kvCurveChart(facts, parts));
    wholeTitle_->setText(facts.planned ? tr("Whole run, planned") : tr("Whole run, sampled at the end of each step"));
    if (lensEnd > 0) {
        setChart(lens_, kvLensChart(facts));
        lensTitle_->setText(tr("First %1 tokens").arg(countText(static_cast<qint64>(lensEnd))));
    }
    if (limits) {
        setChart(limits_, kvLimitChart(facts, *room));
        limitNote_->setText(tr("free for the cache: %1 budget \u2212 %2 other = %3")
                                .arg(bytesText(room->budget), bytesText(room->other), bytesText(room->free())) +
                            (facts.geometry->contextTokens() > 0
                                 ? tr("; the model's limit: %1 tokens").arg(countText(facts.geometry->contextTokens()))
                                 : QString()));
    }
    updateStrips(facts, room, lensEnd);
}

void KvCurvePage::showTime(const KvSummary& facts, const KvPool& pool, KvCurveWidgets parts) {
    say(kvSentences(facts, pool));
    setLegend(facts, parts, false);
    lensBox_->hide();
    limitsKnown_ = false;
    wholeTitle_->setText(tr("Whole run, all sequences"));
    setChart(whole_, kvCurveChart(pool, parts));
    updateStrips({}, std::nullopt, 0);
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kv_cache/kv_curve_page.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

namespace {

constexpr int kTitleHeight = 23, kMargin = 12;

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
    row->addStretch(1);
    if (note != nullptr) {
        row->addWidget(note);
    }
    column->addWidget(head);
    content->setParent(box);
    column->addWidget(content, 1);
    return box;
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
    auto* first = new QWidget(this);
    auto* row = new QHBoxLayout(first);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    lens_ = new Chart(tr("KV cache, the first tokens"), first);
    whole_ = new Chart(tr("KV cache, bytes against tokens"), first);
    lensTitle_ = titleLabel(this);
    wholeTitle_ = titleLabel(this);
    lensBox_ =
        titled(lensTitle_, new TextLabel(tr("pages by the layout"), TypeRole::Table, TextColor::Text2, false, this),
               lens_, first);
    row->addWidget(lensBox_, 1);
    row->addWidget(titled(wholeTitle_, nullptr, whole_, first), 2);
    column->addWidget(first, 3);
    limits_ = new Chart(tr("How far the KV cache could grow"), this);
    TextLabel* limitTitle = titleLabel(this);
    limitTitle->setText(tr("How far it could go"));
    limitNote_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    limitBox_ = titled(limitTitle, limitNote_, limits_, this);
    column->addWidget(limitBox_, 2);
    lensBox_->hide();
    limitBox_->hide();
    for (Chart* chart : {lens_, whole_, limits_}) {
        connect(chart, &PlotWidget::readoutChanged, this, &KvCurvePage::readoutChanged);
    }
}

QList<QWidget*> KvCurvePage::stops() const {
    QList<QWidget*> all;
    for (Chart* chart : {lens_, whole_, limits_}) {
        if (chart == whole_ || !chart->parentWidget()->isHidden()) {
            all << chart;
        }
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
    limitBox_->setVisible(limits);
    if (facts.empty()) {
        for (Chart* chart : {lens_, whole_, limits_}) {
            clear(chart);
        }
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
}

void KvCurvePage::showTime(const KvSummary& facts, const KvPool& pool, KvCurveWidgets parts) {
    say(kvSentences(facts, pool));
    setLegend(facts, parts, false);
    lensBox_->hide();
    limitBox_->hide();
    wholeTitle_->setText(tr("Whole run, all sequences"));
    setChart(whole_, kvCurveChart(pool, parts));
}

} // namespace vitrine::ui

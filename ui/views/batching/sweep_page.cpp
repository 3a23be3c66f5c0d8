// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/batching/sweep_page.h"

#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <set>

#include "ui/models/format.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/controls.h"

namespace vitrine::ui {

namespace {

ThemeColor colorOf(const SweepSeries& series) {
    if (series.hasA) {
        return [](const ThemeTokens& t) { return t.compareA; };
    }
    if (series.hasB) {
        return [](const ThemeTokens& t) { return t.compareB; };
    }
    return [](const ThemeTokens& t) { return t.text3; };
}

/// Slots double from tick to tick.
double placeOf(std::int32_t slotCount) {
    return std::log2(static_cast<double>(slotCount)) + 0.5;
}

QString nameOf(const SweepSeries& series) {
    return series.hasA   ? QStringLiteral("A ") + series.name
           : series.hasB ? QStringLiteral("B ") + series.name
                         : series.name;
}

double valueOf(const SweepPoint& point, bool rate) {
    return rate ? point.tokensPerSecond : point.tpot < 0 ? -1 : point.tpot * 1e3;
}

QString valueWords(const SweepSeries& series, const SweepPoint& point, const Sweep& sweep) {
    QString words = QObject::tr("%1: %2 tokens/s").arg(nameOf(series), countText(std::llround(point.tokensPerSecond)));
    if (point.tpot >= 0) {
        words += QObject::tr(", TPOT %1 %2")
                     .arg(sweep.share, durationText(static_cast<base::TimeNs>(std::llround(point.tpot * 1e9))));
    }
    return words;
}

} // namespace

SweepPage::SweepPage(QWidget* parent) : QWidget(parent) {
    stack_ = new QStackedLayout(this);
    empty_ = new EmptyState(this);
    plots_ = new Surface(Surface::Fill::Canvas, Surface::None, this);
    auto* column = new QVBoxLayout(plots_);
    column->setContentsMargins(0, 8, 0, 0);
    column->setSpacing(0);
    rate_ = new Chart(QObject::tr("Generated tokens a second against slots"), plots_);
    latency_ = new Chart(QObject::tr("Time of one token against slots"), plots_);
    for (Chart* chart : {rate_, latency_}) {
        column->addWidget(chart, 1);
        connect(chart, &PlotWidget::readoutChanged, this, &SweepPage::readoutChanged);
    }
    stack_->addWidget(plots_);
    stack_->addWidget(empty_);
}

void SweepPage::setEmpty(const QString& text, const QString& button, std::function<void()> action) {
    empty_->set(text, button, std::move(action));
    stack_->setCurrentWidget(text.isEmpty() ? plots_ : empty_);
}

bool SweepPage::emptyShown() const {
    return stack_->currentWidget() == empty_;
}

void SweepPage::fill(Chart* chart, const Sweep& sweep, bool rate) {
    std::vector<ChartSeries> series;
    std::vector<ChartNote> notes;
    std::set<std::int32_t> slotCount;
    double top = 0, right = 1;
    for (const SweepSeries& one : sweep.series) {
        ChartSeries line;
        line.name = nameOf(one);
        line.color = colorOf(one);
        line.dashed = one.hasB && !one.hasA;
        for (const SweepPoint& point : one.points) {
            if (valueOf(point, rate) >= 0) {
                line.points.emplace_back(placeOf(point.slotCount), valueOf(point, rate));
                top = std::max(top, valueOf(point, rate));
                right = std::max(right, placeOf(point.slotCount));
                slotCount.insert(point.slotCount);
            }
        }
        if (line.points.empty()) {
            continue;
        }
        ChartSeries dots = line;
        dots.kind = ChartSeries::Kind::Dots;
        dots.width = 7;
        notes.push_back({line.points.back(), line.name, line.color, true});
        series.push_back(std::move(line));
        series.push_back(std::move(dots));
    }
    ChartAxis x{QObject::tr("slots"), right + 0.5, {}};
    for (const std::int32_t slot : slotCount) {
        x.ticks.emplace_back(placeOf(slot), countText(slot));
    }
    ChartAxis y{rate ? QObject::tr("generated tokens/s") : QObject::tr("TPOT %1, ms").arg(sweep.share), 1, {}};
    for (const double tick : roundTicks(std::max(top, 1e-9) * 1.08, 5)) {
        y.ticks.emplace_back(tick, tick >= 10 || tick == std::floor(tick) ? countText(std::llround(tick))
                                                                          : QString::number(tick, 'g', 3));
        y.top = tick;
    }
    chart->setAxes(std::move(x), std::move(y));
    chart->setSeries(std::move(series));
    chart->setNotes(std::move(notes));
    std::vector<double> stops;
    for (const std::int32_t slot : slotCount) {
        stops.push_back(placeOf(slot));
    }
    chart->setStops(std::move(stops), [sweep](double at) {
        QStringList words;
        const auto count = static_cast<std::int32_t>(std::lround(std::exp2(at - 0.5)));
        for (const SweepSeries& one : sweep.series) {
            for (const SweepPoint& point : one.points) {
                if (point.slotCount == count) {
                    words << valueWords(one, point, sweep);
                }
            }
        }
        return QObject::tr("%1 slots. %2").arg(countText(count), words.join(QStringLiteral("; ")));
    });
}

void SweepPage::setSweep(const Sweep& sweep) {
    fill(rate_, sweep, true);
    fill(latency_, sweep, false);
}

} // namespace vitrine::ui

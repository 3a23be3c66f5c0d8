// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/batching/batch_plots.h"

#include <QObject>
#include <algorithm>
#include <cmath>

#include "base/percentile.h"
#include "ui/models/common/format.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/timeline/slot_painter.h"

namespace vitrine::ui {

namespace {

constexpr int kRateBins = 80;
constexpr QLatin1Char kLetters[] = {QLatin1Char('A'), QLatin1Char('B')};

QString count(double value) {
    return countText(std::llround(value));
}

Curve curveOf(std::size_t side, std::function<std::vector<std::optional<double>>(const AxisMap&, int)> values) {
    Curve curve;
    curve.name = kLetters[side];
    curve.values = std::move(values);
    curve.color = side == 0 ? std::function([](const ThemeTokens& t) { return t.compareA; })
                            : std::function([](const ThemeTokens& t) { return t.compareB; });
    curve.dashed = side == 1;
    return curve;
}

/// A top that is twice a round number and leaves little air.
double roundTop(double most) {
    const double wanted = std::max(2.0, most * 1.02) / 2;
    const double power = std::pow(10.0, std::floor(std::log10(wanted)));
    for (const double lead : {1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0}) {
        if (lead * power >= wanted && lead * power == std::floor(lead * power)) {
            return 2 * lead * power;
        }
    }
    return 20 * power;
}

void finish(BatchCurves::Lane& lane, double most, const QStringList& facts) {
    lane.top = roundTop(most);
    lane.topText = count(lane.top);
    lane.middleText = count(lane.top / 2);
    lane.facts = facts.join(QStringLiteral(", "));
}

void addValues(BatchCurves::Lane& lane, const std::array<BatchMapPtr, 2>& maps,
               const BatchCurve& (BatchMap::*curve)() const, const QString& lead) {
    double most = 0;
    QStringList facts;
    for (std::size_t i = 0; i < 2; ++i) {
        if (!maps[i]) {
            continue;
        }
        lane.curves.push_back(curveOf(i, [map = maps[i], curve](const AxisMap& axis, int columns) {
            return ((*map).*curve)().columns(axis, columns);
        }));
        most = std::max(most, ((*maps[i]).*curve)().largest());
        facts << QStringLiteral("%1 %2").arg(kLetters[i]).arg(count(((*maps[i]).*curve)().largest()));
    }
    finish(lane, most, facts);
    lane.facts = lane.facts.isEmpty() ? QString() : lead + QLatin1Char(' ') + lane.facts;
}

} // namespace

BatchCurves batchCurves(const std::array<BatchMapPtr, 2>& maps, const AxisMap& axis) {
    BatchCurves curves;
    double most = 0;
    QStringList means;
    QStringList pools;
    for (std::size_t i = 0; i < 2; ++i) {
        if (!maps[i]) {
            continue;
        }
        curves.rate.curves.push_back(curveOf(i, [map = maps[i]](const AxisMap& shown, int columns) {
            return map->rateColumns(shown, columns, kRateBins);
        }));
        most = std::max(most, maps[i]->mostRate(axis, kRateBins));
        means << QStringLiteral("%1 %2").arg(kLetters[i]).arg(count(maps[i]->side().tokensPerSecond()));
        if (maps[i]->side().poolPages > 0) {
            pools << QObject::tr("%1 %2 of %3")
                         .arg(kLetters[i])
                         .arg(count(static_cast<double>(maps[i]->side().mostPages)),
                              countText(maps[i]->side().poolPages));
        }
    }
    finish(curves.rate, most, means);
    curves.rate.facts = means.isEmpty() ? QString() : QObject::tr("mean %1").arg(curves.rate.facts);
    addValues(curves.queue, maps, &BatchMap::queue, QObject::tr("requests waiting, most"));
    addValues(curves.running, maps, &BatchMap::running, QObject::tr("most"));
    addValues(curves.pages, maps, &BatchMap::usedPages, QObject::tr("most"));
    if (!pools.isEmpty()) {
        curves.pages.facts = QObject::tr("most %1").arg(pools.join(QStringLiteral(", ")));
    }
    return curves;
}

std::vector<LegendItem> batchLegend(bool requests) {
    std::vector<LegendItem> items;
    if (requests) {
        for (const auto& [state, name] : {std::pair{RequestState::Queued, QObject::tr("queued")},
                                          {RequestState::Prefill, QObject::tr("prefill")},
                                          {RequestState::Decode, QObject::tr("decode")},
                                          {RequestState::Padding, QObject::tr("padding waste")},
                                          {RequestState::Idle, QObject::tr("idle in its slot")},
                                          {RequestState::Preempted, QObject::tr("preempted")}}) {
            items.push_back(
                {name, LegendItem::Mark::Swatch, [state](const ThemeTokens& t) { return requestStyle(state, t); }});
        }
        return items;
    }
    for (const auto& [state, name] : {std::pair{base::SlotState::Prefill, QObject::tr("prefill")},
                                      {base::SlotState::Decode, QObject::tr("decode")},
                                      {base::SlotState::Padding, QObject::tr("padding waste")},
                                      {base::SlotState::Idle, QObject::tr("idle")},
                                      {base::SlotState::Preempted, QObject::tr("preempted")}}) {
        items.push_back(
            {name, LegendItem::Mark::Swatch, [state](const ThemeTokens& t) { return slotStyle(state, t); }});
    }
    return items;
}

void showShares(Chart& chart, const BatchPair& pair) {
    double longest = 0;
    for (const BatchSidePtr& side : {pair.a, pair.b}) {
        longest =
            side && !side->latencies.endToEnd.empty() ? std::max(longest, side->latencies.endToEnd.back()) : longest;
    }
    const bool millis = longest < 1;
    const double unit = millis ? 1e3 : 1;
    ChartAxis x{millis ? QObject::tr("ms from arrival") : QObject::tr("s from arrival"), 1, {}};
    for (const double tick : roundTicks(longest * unit, 4)) {
        x.ticks.emplace_back(tick, QString::number(tick, 'g', 4));
        x.top = tick;
    }
    ChartAxis y{
        {},
        100,
        {{0, QStringLiteral("0\u00A0%")}, {50, QStringLiteral("50\u00A0%")}, {100, QStringLiteral("100\u00A0%")}}};
    std::vector<ChartSeries> series;
    std::vector<ChartNote> notes;
    std::vector<double> stops;
    constexpr std::size_t kMostPoints = 400;
    for (std::size_t i = 0; i < 2; ++i) {
        const BatchSidePtr& side = i == 0 ? pair.a : pair.b;
        if (!side || side->latencies.endToEnd.empty()) {
            continue;
        }
        const std::vector<double>& times = side->latencies.endToEnd;
        const auto all = static_cast<double>(std::max<std::size_t>(1, side->requests.size()));
        ChartSeries line;
        line.name = kLetters[i];
        line.color = i == 0 ? ThemeColor([](const ThemeTokens& t) { return t.compareA; })
                            : ThemeColor([](const ThemeTokens& t) { return t.compareB; });
        line.dashed = i == 1;
        line.points.emplace_back(0, 0);
        const std::size_t every = std::max<std::size_t>(1, times.size() / kMostPoints);
        for (std::size_t k = 0; k < times.size(); ++k) {
            if (k % every == 0 || k + 1 == times.size()) {
                line.points.emplace_back(times[k] * unit, line.points.back().y());
                line.points.emplace_back(times[k] * unit, 100.0 * static_cast<double>(k + 1) / all);
                stops.push_back(times[k] * unit);
            }
        }
        const double share = line.points.back().y();
        line.points.emplace_back(x.top, share);
        // The letter of the faster run stands left of its line, that of the slower one right of it.
        const double half = times[times.size() / 2] * unit;
        const BatchSidePtr& other = i == 0 ? pair.b : pair.a;
        const auto othersHalf = other ? base::percentile(other->latencies.endToEnd, 0.5) : std::nullopt;
        const bool slower = othersHalf && (half > *othersHalf * unit || (half == *othersHalf * unit && i == 1));
        notes.push_back({{half, share / 2 + (slower ? -8 : 8)}, line.name, line.color, true, slower});
        series.push_back(std::move(line));
    }
    std::sort(stops.begin(), stops.end());
    stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
    chart.setAxes(std::move(x), std::move(y));
    chart.setSeries(std::move(series));
    chart.setNotes(std::move(notes));
    chart.setStops(std::move(stops), [pair, unit](double at) {
        QStringList words;
        for (std::size_t i = 0; i < 2; ++i) {
            const BatchSidePtr& side = i == 0 ? pair.a : pair.b;
            if (side) {
                const std::vector<double>& times = side->latencies.endToEnd;
                const auto done = std::upper_bound(times.begin(), times.end(), at / unit * (1 + 1e-9)) - times.begin();
                words << QObject::tr("%1 %2 of %3")
                             .arg(kLetters[i])
                             .arg(countText(done), countText(static_cast<qint64>(side->requests.size())));
            }
        }
        return QObject::tr("Done within %1 of their arrival: %2")
            .arg(durationText(static_cast<base::TimeNs>(at / unit * 1e9)), words.join(QStringLiteral(", ")));
    });
}

QString batchWordsAt(const std::array<BatchMapPtr, 2>& maps, const AxisMap& axis, base::TimeNs place) {
    QStringList all;
    for (std::size_t i = 0; i < 2; ++i) {
        if (!maps[i] || place >= maps[i]->length()) {
            continue;
        }
        const AxisMap point =
            AxisMap::ofTime({place, place + std::max<base::TimeNs>(1, axis.range().length() / kRateBins)}, 1);
        const auto rate = maps[i]->rateColumns(point, 1, 1);
        QStringList words;
        if (!rate.empty() && rate.front()) {
            words << QObject::tr("%1 tokens/s").arg(count(*rate.front()));
        }
        words << QObject::tr("%1 queued").arg(count(maps[i]->queue().at(place).value_or(0)))
              << QObject::tr("%1 running").arg(count(maps[i]->running().at(place).value_or(0)));
        if (const base::BatchStepEvent* step = maps[i]->side().stepAt(maps[i]->timeAt(place))) {
            words << QObject::tr("%1 pages").arg(countText(step->usedPages)) +
                         (step->sharedPages > 0 ? QObject::tr(" (%1 shared)").arg(countText(step->sharedPages))
                                                : QString());
            words << QObject::tr("step %1: %2 decode, %3 prefill, %4 padding rows")
                         .arg(countText(step->index))
                         .arg(step->decodeRows)
                         .arg(step->prefillRows)
                         .arg(step->paddingRows);
        }
        all << QString(kLetters[i]) + QLatin1Char(' ') + words.join(QStringLiteral(", "));
    }
    return all.join(QStringLiteral("; "));
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kv_cache/kv_curve_chart.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kDots = 33, kCurvePoints = 600;

QString tr(const char* text) {
    return QCoreApplication::translate("KvView", text);
}

QColor fullColor(const ThemeTokens& t) {
    return t.category(base::MemoryCategory::KvCache).fill;
}

/// The second shade of the category: nearer to the canvas, so that text on both stays readable.
QColor slidingColor(const ThemeTokens& t) {
    return t.dark ? fullColor(t).darker(175) : fullColor(t).darker(160);
}

struct Unit {
    double bytes;
    QString name;
};

Unit unitFor(double top) {
    for (const auto& [bytes, name] :
         {std::pair{1ULL << 40, "TiB"}, {1ULL << 30, "GiB"}, {1ULL << 20, "MiB"}, {1ULL << 10, "KiB"}}) {
        if (top >= static_cast<double>(bytes)) {
            return {static_cast<double>(bytes), QString::fromLatin1(name)};
        }
    }
    return {1, QStringLiteral("B")};
}

QString plainNumber(double value, double step) {
    // Neighbours must not read alike, however short the stretch is.
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
    return decimals == 0 ? countText(std::llround(value)) : QString::number(value, 'f', decimals);
}

ChartAxis axisUpTo(const QString& title, double top, int lines, double begin = 0) {
    ChartAxis axis;
    axis.title = title;
    const std::vector<double> ticks = roundTicks(top - begin, lines);
    const double step = ticks.size() > 1 ? ticks[1] : 1;
    axis.begin = begin;
    axis.top = top + (top - begin) * 0.06;
    const double first = std::ceil(begin / step);
    const int count = std::clamp(static_cast<int>(std::floor(axis.top / step) - first) + 1, 0, 1000);
    for (int i = 0; i < count; ++i) {
        const double tick = (first + i) * step;
        axis.ticks.emplace_back(tick, plainNumber(tick, step));
    }
    return axis;
}

double largestPage(const KvSummary& facts) {
    std::int64_t most = 1;
    if (facts.geometry) {
        for (const KvLayerGroup& group : facts.geometry->groups) {
            most = std::max(most, group.pageTokens);
        }
    }
    return static_cast<double>(most);
}

} // namespace

CategoryStyle kvShade(const ThemeTokens& t, bool sliding) {
    CategoryStyle style = t.category(base::MemoryCategory::KvCache);
    style.fill = sliding ? slidingColor(t) : fullColor(t);
    if (sliding && t.dark) {
        style.ink = t.text1; // the shade is too dark for the ink of the category
    }
    style.hatch = sliding ? Hatch::BackDiagonal : Hatch::None;
    style.tile = 6;
    return style;
}

bool kvSlides(const KvSummary& facts) {
    return facts.geometry ? facts.geometry->window() > 0 : facts.at(facts.maxTokens()).sliding > 0;
}

std::vector<LegendItem> kvLegend(const KvSummary& facts, KvCurveWidgets parts) {
    const bool slides = kvSlides(facts);
    std::vector<LegendItem> items = {
        {tr("full layers"), LegendItem::Mark::Swatch, [](const ThemeTokens& t) { return kvShade(t, false); }}};
    if (slides) {
        items.push_back(
            {tr("sliding layers"), LegendItem::Mark::Swatch, [](const ThemeTokens& t) { return kvShade(t, true); }});
    }
    items.push_back({tr("measured"), LegendItem::Mark::Dot, {}});
    if (facts.geometry && parts.predicted) {
        items.push_back({tr("predicted"), LegendItem::Mark::Line, {}});
    }
    if (facts.geometry && slides && parts.noWindow) {
        items.push_back({tr("without window"), LegendItem::Mark::Dashes, {}});
    }
    return items;
}

KvCurveChart kvCurveChart(const KvSummary& facts, KvCurveWidgets parts) {
    const auto& geometry = facts.geometry;
    const auto most = static_cast<double>(facts.maxTokens());
    const bool slides = kvSlides(facts);
    const KvSample& last = facts.samples.back();
    double top = static_cast<double>(last.total());
    if (geometry) {
        top = std::max(top, static_cast<double>(parts.predicted ? geometry->predicted(most) : 0));
        top = std::max(top, static_cast<double>(parts.noWindow ? geometry->noWindow(most) : 0));
    }
    const Unit unit = unitFor(top);
    KvCurveChart curve;
    curve.x = axisUpTo(tr("tokens"), most, 8);
    curve.y = axisUpTo(tr("KV cache, %1").arg(unit.name), top / unit.bytes, 6);

    std::vector<QPointF> full{{0, 0}}, total{{0, 0}}, formula{{0, 0}}, unbounded{{0, 0}};
    const double page = largestPage(facts);
    for (const KvSample& sample : thinned(facts.samples, kCurvePoints)) {
        const auto x = static_cast<double>(sample.tokens);
        const double before = full.back().x();
        if (x - before <= page) { // a page comes at once: a stair; a step of many pages: a slope
            full.emplace_back(before, static_cast<double>(sample.full) / unit.bytes);
            total.emplace_back(before, static_cast<double>(sample.total()) / unit.bytes);
        }
        full.emplace_back(x, static_cast<double>(sample.full) / unit.bytes);
        total.emplace_back(x, static_cast<double>(sample.total()) / unit.bytes);
    }
    curve.series.push_back({tr("full layers"), ChartSeries::Kind::Area, full, {}, fullColor, Hatch::None});
    if (slides) {
        curve.series.push_back(
            {tr("sliding layers"), ChartSeries::Kind::Area, total, full, slidingColor, Hatch::BackDiagonal});
    }
    const auto text1 = [](const ThemeTokens& t) { return t.text1; };
    const auto text2 = [](const ThemeTokens& t) { return t.text2; };
    if (geometry) {
        const double knee = geometry->knee();
        if (parts.noWindow && slides) {
            unbounded.emplace_back(most, static_cast<double>(geometry->noWindow(most)) / unit.bytes);
            curve.series.push_back(
                {tr("without window"), ChartSeries::Kind::Line, unbounded, {}, text2, Hatch::None, 1.2, true});
            curve.notes.push_back(
                {unbounded.back(), tr("without window %1").arg(bytesText(geometry->noWindow(most))), text2});
        }
        if (parts.predicted) {
            if (knee > 0 && knee < most) {
                formula.emplace_back(knee, static_cast<double>(geometry->predicted(knee)) / unit.bytes);
            }
            formula.emplace_back(most, static_cast<double>(geometry->predicted(most)) / unit.bytes);
            curve.series.push_back({tr("predicted"), ChartSeries::Kind::Line, formula, {}, text1, Hatch::None, 1});
        }
        if (slides && knee < most) {
            curve.marks.push_back(
                {Qt::Vertical, knee,
                 geometry->sequences > 1
                     ? tr("window %1, %2 sequences").arg(countText(geometry->window()), countText(geometry->sequences))
                     : tr("window %1").arg(countText(geometry->window()))});
        }
    }
    std::vector<QPointF> dots;
    for (const KvSample& sample : thinned(facts.samples, kDots)) {
        dots.emplace_back(static_cast<double>(sample.tokens), static_cast<double>(sample.total()) / unit.bytes);
    }
    curve.series.push_back({tr("measured"), ChartSeries::Kind::Dots, dots, {}, text1, Hatch::None, 6});
    const bool withError = geometry && parts.predicted;
    curve.notes.push_back({dots.back(),
                           withError
                               ? tr("measured %1, error %2").arg(bytesText(last.total()), errorText(facts.error()))
                               : tr("measured %1").arg(bytesText(last.total())),
                           text1, true});
    return curve;
}

base::TimeNs kvPoolTime(const KvPool& pool, double seconds) {
    return std::clamp(static_cast<base::TimeNs>(std::llround(seconds * 1e9)), pool.begin(), pool.end() - 1);
}

KvCurveChart kvCurveChart(const KvPool& pool, KvCurveWidgets parts) {
    const double first = static_cast<double>(pool.begin()) * 1e-9, end = static_cast<double>(pool.end()) * 1e-9;
    std::vector<std::pair<double, KvPoolBytes>> moments;
    bool slides = false;
    double top = 1;
    for (const base::TimeNs moment : pool.moments()) {
        const KvPoolBytes bytes = pool.bytesAt(moment);
        const double at = static_cast<double>(moment) * 1e-9;
        if (!moments.empty()) { // what holds until here
            moments.emplace_back(at, moments.back().second);
        }
        moments.emplace_back(at, bytes);
        slides = slides || bytes.sliding > 0;
        top = std::max(top, static_cast<double>(bytes.measured()));
    }
    if (!moments.empty()) {
        moments.emplace_back(end, moments.back().second);
    }
    for (const auto& [at, bytes] : moments) {
        top = std::max(top, static_cast<double>(std::max(parts.predicted ? bytes.predicted() : 0,
                                                         parts.noWindow && slides ? bytes.noWindow : 0)));
    }
    const Unit unit = unitFor(top);
    KvCurveChart curve;
    curve.x = axisUpTo(tr("s since the run began"), end, 8, first);
    curve.y = axisUpTo(tr("KV cache, %1").arg(unit.name), top / unit.bytes, 6);
    std::vector<QPointF> full, total, formula, unbounded;
    for (const auto& [at, bytes] : moments) {
        const auto point = [&, x = at](std::uint64_t value) {
            return QPointF(x, static_cast<double>(value) / unit.bytes);
        };
        full.push_back(point(bytes.full));
        total.push_back(point(bytes.measured()));
        formula.push_back(point(bytes.predicted()));
        unbounded.push_back(point(bytes.noWindow));
    }
    const auto text1 = [](const ThemeTokens& t) { return t.text1; };
    const auto text2 = [](const ThemeTokens& t) { return t.text2; };
    curve.series.push_back({tr("full layers"), ChartSeries::Kind::Area, full, {}, fullColor, Hatch::None});
    if (slides) {
        curve.series.push_back(
            {tr("sliding layers"), ChartSeries::Kind::Area, total, full, slidingColor, Hatch::BackDiagonal});
        if (parts.noWindow) {
            curve.series.push_back(
                {tr("without window"), ChartSeries::Kind::Line, unbounded, {}, text2, Hatch::None, 1.2, true});
        }
    }
    if (parts.predicted) {
        curve.series.push_back({tr("predicted"), ChartSeries::Kind::Line, formula, {}, text1, Hatch::None, 1.2});
    }
    const KvPoolBytes most = pool.bytesAt(pool.fullest());
    const QString words =
        parts.predicted && most.predicted() > 0
            ? tr("most %1 in pages, tokens need %2").arg(bytesText(most.measured()), bytesText(most.predicted()))
            : tr("most %1 in pages").arg(bytesText(most.measured()));
    curve.notes.push_back(
        {{static_cast<double>(pool.fullest()) * 1e-9, static_cast<double>(most.measured()) / unit.bytes},
         words,
         text1,
         true,
         pool.fullest() < pool.end() / 2});
    return curve;
}

QString kvText(const KvPool& pool, double seconds) {
    const KvPoolBytes bytes = pool.bytesAt(kvPoolTime(pool, seconds));
    return tr("%1: full %2, sliding %3, measured %4, predicted %5, fragmentation %6")
        .arg(instantText(kvPoolTime(pool, seconds)), bytesText(bytes.full), bytesText(bytes.sliding),
             bytesText(bytes.measured()), bytesText(bytes.predicted()), shareText(bytes.waste()));
}

QString kvText(const KvSummary& facts, double tokens) {
    const KvSample& sample = facts.at(static_cast<std::int64_t>(tokens));
    QString words = tr("%1 tokens: full %2, sliding %3, measured %4")
                        .arg(countText(sample.tokens), bytesText(sample.full), bytesText(sample.sliding),
                             bytesText(sample.total()));
    if (facts.geometry) {
        words += tr(", predicted %1").arg(bytesText(facts.geometry->predicted(tokens)));
    }
    return words;
}

} // namespace vitrine::ui

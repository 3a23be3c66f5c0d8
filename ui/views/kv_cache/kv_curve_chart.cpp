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
constexpr double kLensSteps = 1024;

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

/// A value holds until the next sample: lines are horizontal and vertical only, and nothing stands before the first.
class Stairs {
public:
    void add(double x, double value) {
        points_.emplace_back(x, points_.empty() ? 0 : points_.back().y());
        points_.emplace_back(x, value);
    }
    std::vector<QPointF> take() { return std::move(points_); }

private:
    std::vector<QPointF> points_;
};

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
    items.push_back({facts.planned ? tr("planned pages") : tr("held"), LegendItem::Mark::Dot, {}});
    if (facts.geometry && parts.predicted) {
        items.push_back({tr("tokens kept, formula"), LegendItem::Mark::Line, {}});
    }
    if (facts.geometry && slides && parts.noWindow) {
        items.push_back({tr("without windows"), LegendItem::Mark::Dashes, {}});
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
        top = std::max(top, static_cast<double>(parts.predicted ? geometry->kept(most) : 0));
        top = std::max(top, static_cast<double>(parts.noWindow ? geometry->noWindow(most) : 0));
    }
    const Unit unit = unitFor(top);
    KvCurveChart curve;
    curve.x = axisUpTo(tr("tokens"), most, 8);
    curve.y = axisUpTo(tr("KV cache, %1").arg(unit.name), top / unit.bytes, 6);

    Stairs fullStairs, totalStairs;
    for (const KvSample& sample : thinned(facts.samples, kCurvePoints)) {
        const auto x = static_cast<double>(sample.tokens);
        fullStairs.add(x, static_cast<double>(sample.full) / unit.bytes);
        totalStairs.add(x, static_cast<double>(sample.total()) / unit.bytes);
    }
    const std::vector<QPointF> full = fullStairs.take(), total = totalStairs.take();
    std::vector<QPointF> formula{{0, 0}}, unbounded{{0, 0}};
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
                {tr("without windows"), ChartSeries::Kind::Line, unbounded, {}, text2, Hatch::None, 1.2, true});
            curve.notes.push_back(
                {unbounded.back(), tr("without windows %1").arg(bytesText(geometry->noWindow(most))), text2});
        }
        if (parts.predicted) {
            if (knee > 0 && knee < most) {
                formula.emplace_back(knee, static_cast<double>(geometry->kept(knee)) / unit.bytes);
            }
            formula.emplace_back(most, static_cast<double>(geometry->kept(most)) / unit.bytes);
            curve.series.push_back(
                {tr("tokens kept, formula"), ChartSeries::Kind::Line, formula, {}, text1, Hatch::None, 1});
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
    const QString held = facts.planned ? tr("planned pages") : tr("held");
    if (!facts.planned) {
        curve.series.push_back({held, ChartSeries::Kind::Dots, dots, {}, text1, Hatch::None, 6});
    }
    curve.notes.push_back({dots.back(), tr("%1 %2").arg(held, bytesText(last.total())), text1, true});
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
        top = std::max(top, static_cast<double>(bytes.held()));
    }
    if (!moments.empty()) {
        moments.emplace_back(end, moments.back().second);
    }
    for (const auto& [at, bytes] : moments) {
        top = std::max(top, static_cast<double>(std::max(parts.predicted ? bytes.kept() : 0,
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
        total.push_back(point(bytes.held()));
        formula.push_back(point(bytes.kept()));
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
                {tr("without windows"), ChartSeries::Kind::Line, unbounded, {}, text2, Hatch::None, 1.2, true});
        }
    }
    if (parts.predicted) {
        curve.series.push_back(
            {tr("tokens kept, formula"), ChartSeries::Kind::Line, formula, {}, text1, Hatch::None, 1.2});
    }
    const KvPoolBytes most = pool.bytesAt(pool.fullest());
    const QString words =
        parts.predicted && most.kept() > 0
            ? tr("most %1 in pages, tokens need %2").arg(bytesText(most.held()), bytesText(most.kept()))
            : tr("most %1 in pages").arg(bytesText(most.held()));
    curve.notes.push_back({{static_cast<double>(pool.fullest()) * 1e-9, static_cast<double>(most.held()) / unit.bytes},
                           words,
                           text1,
                           true,
                           pool.fullest() < pool.end() / 2});
    return curve;
}

QString kvText(const KvPool& pool, double seconds) {
    const KvPoolBytes bytes = pool.bytesAt(kvPoolTime(pool, seconds));
    return tr("%1: full %2, sliding %3, held %4, kept %5, page rounding %6")
        .arg(instantText(kvPoolTime(pool, seconds)), bytesText(bytes.full), bytesText(bytes.sliding),
             bytesText(bytes.held()), bytesText(bytes.kept()), shareText(bytes.waste()));
}

QString kvText(const KvSummary& facts, double tokens) {
    const KvSample& sample = facts.at(static_cast<std::int64_t>(tokens));
    QString words = tr("%1 tokens: full %2, sliding %3, %4 %5")
                        .arg(countText(sample.tokens), bytesText(sample.full), bytesText(sample.sliding),
                             kvHeldWord(facts.planned), bytesText(sample.total()));
    if (facts.geometry) {
        const std::uint64_t kept = facts.geometry->kept(static_cast<double>(sample.tokens));
        words += tr(", kept %1, page rounding %2")
                     .arg(bytesText(kept), bytesText(sample.total() - std::min(sample.total(), kept)));
    }
    return words;
}

KvCurveChart kvLensChart(const KvSummary& facts) {
    KvCurveChart curve;
    const KvGeometry& geometry = *facts.geometry;
    const double end = kvLensEnd(facts);
    const auto step = static_cast<int>(std::max(1.0, end / kLensSteps));
    Stairs fullStairs, totalStairs;
    const KvGeometry unbounded = kvWithWindow(geometry, 0);
    const Unit unit = unitFor(static_cast<double>(unbounded.pages(end)));
    const auto scaled = [&](std::uint64_t bytes) { return static_cast<double>(bytes) / unit.bytes; };
    for (double tokens = 1; tokens <= end; tokens += step) {
        std::uint64_t full = 0;
        for (const KvLayerGroup& group : geometry.groups) {
            full += group.sliding() ? 0 : group.pageBytes(tokens);
        }
        fullStairs.add(tokens, scaled(full));
        totalStairs.add(tokens, scaled(geometry.pages(tokens)));
    }
    const std::vector<QPointF> full = fullStairs.take(), total = totalStairs.take();
    const auto text2 = [](const ThemeTokens& t) { return t.text2; };
    const auto text1 = [](const ThemeTokens& t) { return t.text1; };
    const auto accent = [](const ThemeTokens& t) { return t.accent; };
    curve.x = axisUpTo(tr("tokens"), end, 4);
    curve.y = axisUpTo(unit.name, scaled(unbounded.pages(end)), 4);
    curve.series = {
        {tr("full layers"), ChartSeries::Kind::Area, full, {}, fullColor, Hatch::None},
        {tr("sliding layers"), ChartSeries::Kind::Area, total, full, slidingColor, Hatch::BackDiagonal},
        {tr("without windows"),
         ChartSeries::Kind::Line,
         {{0, 0}, {end, scaled(geometry.noWindow(end))}},
         {},
         text2,
         Hatch::None,
         1.5,
         true},
        {tr("tokens kept, formula"),
         ChartSeries::Kind::Line,
         {{0, 0}, {geometry.knee(), scaled(geometry.kept(geometry.knee()))}, {end, scaled(geometry.kept(end))}},
         {},
         accent,
         Hatch::None,
         1.5}};
    curve.marks = {{Qt::Vertical, geometry.knee(), tr("window %1").arg(countText(geometry.window()))}};
    curve.notes = {
        {{end, scaled(geometry.noWindow(end))}, tr("%1 without").arg(bytesText(geometry.noWindow(end))), text2},
        {{end, scaled(geometry.kept(end))}, tr("%1 kept").arg(bytesText(geometry.kept(end))), text1, true}};
    return curve;
}

double kvLensEnd(const KvSummary& facts) {
    constexpr double kRounding = 512, kWindows = 4;
    const bool pages = facts.geometry && facts.geometry->sequences == 1 && facts.geometry->window() > 0 &&
                       std::ranges::all_of(facts.geometry->groups, [](const auto& g) { return g.pageTokens > 0; });
    if (!pages) {
        return 0;
    }
    const double end = std::ceil(kWindows * static_cast<double>(facts.geometry->window()) / kRounding) * kRounding;
    return end * 2 <= static_cast<double>(facts.maxTokens()) ? end : 0; // else the whole run shows it
}

KvCurveChart kvLimitChart(const KvSummary& facts, const KvRoom& room) {
    KvCurveChart curve;
    const KvGeometry& geometry = *facts.geometry;
    const auto most = static_cast<double>(facts.maxTokens());
    struct Line {
        QString name;
        KvGeometry geometry;
        bool dashed;
        ThemeColor color;
    };
    const auto text2 = [](const ThemeTokens& t) { return t.text2; };
    const auto text1 = [](const ThemeTokens& t) { return t.text1; };
    const auto accent = [](const ThemeTokens& t) { return t.accent; };
    std::vector<Line> lines = {{tr("as it is, %1").arg(geometry.dtype), geometry, false, accent}};
    if (geometry.window() > 0) {
        lines.push_back({tr("no windows"), kvWithWindow(geometry, 0), true, text2});
    }
    if (const auto small = kvInType(geometry, QStringLiteral("int8"));
        small && small->kept(most) < geometry.kept(most)) {
        lines.push_back({tr("FP8 and INT8"), *small, true, text1});
    }
    const auto limit = static_cast<double>(geometry.contextTokens());
    double end = limit;
    if (limit <= 0) {
        end = std::max(most * 2, static_cast<double>(kvTokensWithin(geometry, room.free())) * 1.5);
    }
    end = std::min(end, 1e12);
    double top = static_cast<double>(room.free());
    top =
        std::min(top, static_cast<double>(lines[std::min<std::size_t>(1, lines.size() - 1)].geometry.pages(end)) * 1.1);
    for (const Line& line : lines) {
        top = std::max(top,
                       std::min(static_cast<double>(line.geometry.pages(end)), static_cast<double>(room.free()) * 4));
    }
    const Unit unit = unitFor(top);
    const auto scaled = [&](std::uint64_t bytes) { return static_cast<double>(bytes) / unit.bytes; };
    curve.x = axisUpTo(tr("tokens"), end, 6);
    curve.y = axisUpTo(unit.name, top / unit.bytes, 4);
    const bool freeShown = scaled(room.free()) <= curve.y.top;
    for (const Line& line : lines) {
        const auto within =
            static_cast<double>(kvTokensWithin(line.geometry, static_cast<std::uint64_t>(curve.y.top * unit.bytes)));
        const double to = std::min(end, within);
        std::vector<QPointF> points{{0, 0}};
        if (const double knee = line.geometry.knee(); knee > 0 && knee < to) {
            points.emplace_back(knee, scaled(line.geometry.kept(knee)));
        }
        points.emplace_back(to, scaled(line.geometry.kept(to)));
        curve.series.push_back(
            {line.name, ChartSeries::Kind::Line, points, {}, line.color, Hatch::None, 1.5, line.dashed});
        const auto fits = static_cast<double>(kvTokensWithin(line.geometry, room.free()));
        const double stop = std::min(fits, end);
        const QPointF at(stop, std::min(scaled(line.geometry.kept(stop)), curve.y.top));
        curve.series.push_back({line.name, ChartSeries::Kind::Dots, {at}, {}, line.color, Hatch::None, 8});
        curve.notes.push_back(
            {at, tr("%1: %2").arg(line.name, countText(std::llround(stop))), line.color, !line.dashed});
    }
    std::vector<QPointF> done{{0, 0}};
    if (geometry.knee() > 0 && geometry.knee() < most) {
        done.emplace_back(geometry.knee(), scaled(geometry.kept(geometry.knee())));
    }
    done.emplace_back(most, scaled(geometry.kept(most)));
    curve.series.push_back({tr("this run"), ChartSeries::Kind::Line, done, {}, accent, Hatch::None, 4});
    if (freeShown) {
        curve.marks.push_back({Qt::Horizontal, scaled(room.free()), tr("free %1").arg(bytesText(room.free()))});
    }
    if (limit > 0) {
        curve.marks.push_back({Qt::Vertical, limit, QString()});
    }
    return curve;
}

} // namespace vitrine::ui

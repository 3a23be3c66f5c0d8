// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kv_cache/kv_strips.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/views/kv_cache/kv_curve_chart.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

namespace {

constexpr int kRoundingPoints = 1024;
constexpr double kLimitInSight = 6; ///< times the pages held: a limit further up would flatten them

QString stripText(const char* text) {
    return QCoreApplication::translate("KvView", text);
}

bool inPages(const KvSummary& facts) {
    return facts.geometry && facts.geometry->sequences == 1 && !facts.empty() &&
           std::ranges::all_of(facts.geometry->groups, [](const KvLayerGroup& group) { return group.pageTokens > 0; });
}

double roundingAt(const KvGeometry& geometry, double tokens) {
    const std::uint64_t pages = geometry.pages(tokens), kept = geometry.kept(tokens);
    return static_cast<double>(pages - std::min(pages, kept));
}

/// A page of all full layers together; 0 where they have pages of several sizes, or none.
double fullPageBytes(const KvGeometry& geometry) {
    std::int64_t tokens = 0;
    double bytes = 0;
    for (const KvLayerGroup& group : geometry.groups) {
        if (group.sliding()) {
            continue;
        }
        if (group.pageTokens <= 0 || (tokens > 0 && tokens != group.pageTokens)) {
            return 0;
        }
        tokens = group.pageTokens;
        bytes += static_cast<double>(group.bytesPerToken);
    }
    return bytes * static_cast<double>(tokens);
}

struct Pressure {
    std::int64_t pages = 0; ///< most that were held
    std::int64_t limit = 0; ///< that free memory is good for; 0: not known
};

std::optional<Pressure> pressureOf(const KvSummary& facts, const std::optional<KvRoom>& room) {
    const double page = facts.geometry ? fullPageBytes(*facts.geometry) : 0;
    if (page <= 0 || facts.empty() || facts.geometry->sequences != 1 || !facts.turn || facts.turn->end <= 0) {
        return std::nullopt;
    }
    Pressure pressure;
    for (const KvSample& sample : facts.samples) {
        pressure.pages =
            std::max(pressure.pages, static_cast<std::int64_t>(std::llround(static_cast<double>(sample.full) / page)));
    }
    if (room) {
        std::uint64_t rings = 0; // they are taken whatever the number of tokens is
        for (const KvLayerGroup& group : facts.geometry->groups) {
            rings += group.sliding() ? group.pageBytes(static_cast<double>(group.window)) : 0;
        }
        pressure.limit =
            static_cast<std::int64_t>(static_cast<double>(room->free() - std::min(room->free(), rings)) / page);
    }
    return pressure.pages > 0 ? std::optional(pressure) : std::nullopt;
}

QString answerText(const KvTurn& turn) {
    return turn.answerTokens > 0 ? stripText("answer, %1 tokens").arg(countText(turn.answerTokens))
                                 : stripText("answer");
}

double secondsOf(base::TimeNs time) {
    return static_cast<double>(time) * 1e-9;
}

} // namespace

StepStripData kvTurnBand(const KvSummary& facts, double begin, double end) {
    StepStripData data;
    data.begin = begin;
    data.end = end;
    if (!facts.turn || facts.empty()) {
        return data;
    }
    const auto most = static_cast<double>(facts.maxTokens());
    const double prompt = std::min(static_cast<double>(facts.turn->promptTokens), most);
    const QString words = stripText("prompt, %1 tokens").arg(countText(facts.turn->promptTokens));
    data.bands.push_back({0, prompt, words, true});
    if (most > prompt) {
        data.bands.push_back({prompt, most, answerText(*facts.turn), false});
    }
    data.text = words + QStringLiteral("; ") + answerText(*facts.turn);
    return data;
}

StepStripData kvRoundingStrip(const KvSummary& facts, double tokens, double end) {
    StepStripData data;
    data.end = end;
    if (!inPages(facts)) {
        return data;
    }
    const KvGeometry& geometry = *facts.geometry;
    for (const KvLayerGroup& group : geometry.groups) {
        data.period = std::max(data.period, group.sliding() ? 0 : static_cast<double>(group.pageTokens));
    }
    const double step = std::max(1.0, tokens / kRoundingPoints);
    for (double at = 1; at <= tokens; at += step) {
        // Where a point stands for several tokens it shows the most of them, which is right after a page was taken.
        double most = 0;
        // A page further on it is the same again.
        const double until = at + std::min(step, std::max(1.0, data.period));
        for (double one = std::floor(at); one < until && one <= tokens; ++one) {
            most = std::max(most, roundingAt(geometry, one));
        }
        data.steps.emplace_back(std::floor(at) - 1, most);
        data.top = std::max(data.top, most);
    }
    data.stop = tokens;
    data.yTicks = {{data.top, bytesText(static_cast<std::uint64_t>(data.top))}};
    data.top *= 1.08;
    data.text = kvRoundingText(facts);
    return data;
}

QString kvRoundingText(const KvSummary& facts) {
    if (!inPages(facts)) {
        return {};
    }
    const KvGeometry& geometry = *facts.geometry;
    const auto tokens = static_cast<double>(facts.maxTokens());
    const double bytes = roundingAt(geometry, tokens);
    const auto pages = static_cast<double>(geometry.pages(tokens));
    return stripText("now %1, %2 of the cache")
        .arg(bytesText(static_cast<std::uint64_t>(bytes)), shareText(pages > 0 ? bytes / pages : 0));
}

StepStripData kvPressureStrip(const KvSummary& facts, const std::optional<KvRoom>& room) {
    StepStripData data;
    const std::optional<Pressure> pressure = pressureOf(facts, room);
    if (!pressure) {
        return data;
    }
    const KvTurn& turn = *facts.turn;
    const double page = fullPageBytes(*facts.geometry);
    data.begin = secondsOf(turn.begin);
    data.end = std::max(secondsOf(turn.end), data.begin + 1e-9);
    data.stop = data.end;
    std::vector<KvSample> byTime = facts.samples;
    std::ranges::stable_sort(byTime, {}, &KvSample::time);
    for (const KvSample& sample : byTime) {
        const auto pages = static_cast<double>(std::llround(static_cast<double>(sample.full) / page));
        const double at = secondsOf(sample.time);
        if (at <= data.end && (data.steps.empty() || data.steps.back().y() != pages)) {
            data.steps.emplace_back(std::max(at, data.begin), pages);
        }
    }
    data.style = [](const ThemeTokens& t) { return kvShade(t, false); };
    data.bands = {{secondsOf(turn.begin), secondsOf(turn.promptEnd),
                   stripText("prompt, %1").arg(durationText(turn.promptEnd - turn.begin)), true},
                  {secondsOf(turn.promptEnd), secondsOf(turn.end),
                   answerText(turn) + QStringLiteral(", ") + durationText(turn.end - turn.promptEnd), false}};
    const auto most = static_cast<double>(pressure->pages), limit = static_cast<double>(pressure->limit);
    data.top = most;
    if (limit > 0 && limit <= kLimitInSight * most) {
        data.limit =
            StepStripData::Limit{limit, stripText("%1 pages: what the budget leaves").arg(countText(pressure->limit))};
        data.top = std::max(most, limit);
    }
    data.yTicks = {{most, countText(pressure->pages)}};
    data.top *= 1.08;
    constexpr base::TimeNs kFinest = 1'000'000;
    const std::vector<double> grid = roundTicks(data.end - data.begin, 8);
    const double step = grid.size() > 1 ? grid[1] : 1;
    for (double at = std::ceil(data.begin / step) * step; at <= data.end; at += step) {
        const auto time = static_cast<base::TimeNs>(std::llround(at * 1e9));
        data.xTicks.emplace_back(at, instantText(time, std::max(kFinest, static_cast<base::TimeNs>(step * 1e9))));
    }
    data.text = kvPressureText(facts, room);
    return data;
}

QString kvPressureText(const KvSummary& facts, const std::optional<KvRoom>& room) {
    const std::optional<Pressure> pressure = pressureOf(facts, room);
    if (!pressure) {
        return {};
    }
    if (pressure->limit <= 0) {
        return stripText("%1 pages").arg(countText(pressure->pages));
    }
    return stripText("%1 of the %2 pages that the budget leaves, %3")
        .arg(countText(pressure->pages), countText(pressure->limit),
             shareText(static_cast<double>(pressure->pages) / static_cast<double>(pressure->limit)));
}

} // namespace vitrine::ui

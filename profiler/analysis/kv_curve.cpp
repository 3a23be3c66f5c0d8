// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/kv_curve.h"

#include <algorithm>
#include <cmath>

#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::profiler {

namespace {

using Samples = std::vector<std::pair<base::TimeNs, double>>;

constexpr std::string_view kGroupPrefix = "kv_bytes.";

/// The value that holds once everything at `time` has been said.
double valueAt(const Samples& samples, base::TimeNs time) {
    const auto after = std::ranges::upper_bound(samples, time, {}, &std::pair<base::TimeNs, double>::first);
    return after == samples.begin() ? 0 : std::prev(after)->second;
}

/// Whether a group's bytes per token differ on the two sides of a point.
bool isKnee(const KvPoint& before, const KvPoint& point, const KvPoint& next) {
    for (std::size_t group = 0; group < point.bytes.size(); ++group) {
        const bool grewBefore = point.bytes[group] > before.bytes[group];
        const bool growsAfter = next.bytes[group] > point.bytes[group];
        if (grewBefore != growsAfter) {
            return true;
        }
    }
    return (point.tokens < before.tokens) != (next.tokens < point.tokens);
}

std::vector<KvPoint> thinned(const std::vector<KvPoint>& points, std::size_t limit) {
    if (points.size() <= limit || limit < 4) {
        return points;
    }
    const std::size_t every = points.size() / (limit / 2) + 1;
    std::size_t knees = 0;
    std::vector<KvPoint> kept;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const bool edge = i == 0 || i + 1 == points.size();
        const bool knee = !edge && knees < limit / 2 && isKnee(points[i - 1], points[i], points[i + 1]);
        knees += knee ? 1 : 0;
        if (edge || knee || i % every == 0) {
            kept.push_back(points[i]);
        }
    }
    return kept;
}

} // namespace

KvCurve kvCurve(const RunTimeline& timeline, std::size_t limit) {
    KvCurve curve;
    std::vector<Samples> bytes;
    for (const std::string& name : timeline.counters().names()) {
        if (name.starts_with(kGroupPrefix)) {
            curve.groups.push_back(name.substr(kGroupPrefix.size()));
            bytes.push_back(timeline.counters().samples(name));
        }
    }
    const Samples tokens = timeline.counters().samples("kv_tokens");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto& [time, count] = tokens[i];
        if (i + 1 < tokens.size() && tokens[i + 1].first == time) {
            continue; // several at one instant: the last holds
        }
        if (count == 0 && !curve.points.empty()) {
            continue; // a cache that is given back is no point of the curve
        }
        KvPoint point{count, time, {}};
        for (const Samples& samples : bytes) {
            point.bytes.push_back(valueAt(samples, time));
        }
        if (curve.points.empty() || curve.points.back().tokens != count || curve.points.back().bytes != point.bytes) {
            curve.points.push_back(std::move(point));
        }
    }
    curve.points = thinned(curve.points, limit);
    return curve;
}

} // namespace vitrine::profiler

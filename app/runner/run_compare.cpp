// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/run_compare.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace vitrine::app {

namespace {

using nlohmann::json;

/// Peaks of a run's phases, in order.
std::vector<std::pair<std::string, double>> phasePeaks(const profiler::MemoryTimeline& timeline) {
    std::vector<std::pair<std::string, double>> peaks;
    std::map<std::string, int> seen;
    for (const profiler::ScopeRow& scope : timeline.scopes()) {
        if (scope.kind != base::ScopeKind::Phase) {
            continue;
        }
        std::string label(timeline.text(scope.name));
        const int times = ++seen[label];
        label += times > 1 ? fmt::format(" {}", times) : "";
        const base::TimeNs end = scope.end >= 0 ? scope.end : timeline.end();
        // The last instant counts: what a phase leaves behind belongs to it.
        peaks.emplace_back(label, static_cast<double>(timeline.peak(scope.begin, end + 1).maxTotal));
    }
    return peaks;
}

std::vector<MemoryStep> alignPhases(const profiler::MemoryTimeline& a, const profiler::MemoryTimeline& b) {
    std::vector<MemoryStep> steps;
    for (const auto& [label, bytes] : phasePeaks(a)) {
        steps.push_back({label, bytes, std::nullopt});
    }
    for (const auto& [label, bytes] : phasePeaks(b)) {
        const auto same =
            std::find_if(steps.begin(), steps.end(), [&](const MemoryStep& step) { return step.label == label; });
        if (same == steps.end()) {
            steps.push_back({label, std::nullopt, bytes});
        } else {
            same->b = bytes;
        }
    }
    return steps;
}

json parsedObject(const std::string& text) {
    json value = json::parse(text, nullptr, false);
    return value.is_object() ? value : json::object();
}

} // namespace

std::shared_ptr<const profiler::MemoryTimeline> loadTimeline(const sessions::SessionFile& session,
                                                             sessions::RunId run) {
    constexpr std::size_t kBatch = 64;
    profiler::MemoryTimelineBuilder builder;
    for (const std::string& stream : session.streams(run)) {
        std::uint64_t next = 0;
        for (auto batch = session.chunks(run, stream, next, kBatch); !batch.empty();
             batch = session.chunks(run, stream, next, kBatch)) {
            for (const base::ColumnChunk& chunk : batch) {
                builder.add(chunk);
                next = chunk.sequence + 1;
            }
        }
    }
    return builder.snapshot();
}

RunComparison compareRuns(const sessions::SessionFile& first, sessions::RunId a, const sessions::SessionFile& second,
                          sessions::RunId b) {
    const sessions::RunInfo left = first.run(a);
    const sessions::RunInfo right = second.run(b);
    RunComparison comparison;
    comparison.spec = engine::diffExperiments(parsedObject(left.specJson), parsedObject(right.specJson));
    comparison.metrics = sessions::compareMetrics(left, right);
    comparison.memory = alignPhases(*loadTimeline(first, a), *loadTimeline(second, b));
    return comparison;
}

} // namespace vitrine::app

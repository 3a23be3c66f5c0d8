// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_compare.h"

#include <nlohmann/json.hpp>

#include "profiler/analysis/timeline_align.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "sessions/metric_difference.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

std::optional<double> peakIn(const profiler::RunTimeline& timeline,
                             const std::optional<profiler::TimeStretch>& stretch) {
    if (!stretch) {
        return std::nullopt;
    }
    // The last instant counts: what a phase leaves allocated belongs to it.
    return static_cast<double>(timeline.memory().peak(stretch->begin, stretch->end + 1).maxTotal);
}

MemoryComparison compareMemory(const profiler::RunTimeline& a, const profiler::RunTimeline& b) {
    MemoryComparison memory;
    if (a.memory().events() == 0 || b.memory().events() == 0) {
        return memory;
    }
    memory.sentence = profiler::comparePeaks(a, b).sentence;
    const profiler::Alignment alignment = profiler::align(a, b, profiler::AlignBy::Phase);
    for (const profiler::AlignedSegment& segment : alignment.segments()) {
        if (!segment.name.empty()) {
            memory.phases.push_back({segment.name, peakIn(a, segment.a), peakIn(b, segment.b)});
        }
    }
    return memory;
}

json parsedObject(const std::string& text) {
    json value = json::parse(text, nullptr, false);
    return value.is_object() ? value : json::object();
}

} // namespace

std::shared_ptr<const profiler::RunTimeline> loadTimeline(const sessions::SessionFile& session, sessions::RunId run) {
    constexpr std::size_t kBatch = 64;
    profiler::RunTimelineBuilder builder;
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
    comparison.memory = compareMemory(*loadTimeline(first, a), *loadTimeline(second, b));
    return comparison;
}

} // namespace vitrine::app

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/load_stages.h"

#include <algorithm>
#include <map>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::profiler {

namespace {

std::vector<ScopeRow> loadPhases(const RunTimeline& timeline) {
    std::vector<ScopeRow> loads = scopesOfKind(timeline, base::ScopeKind::Phase);
    std::erase_if(loads, [&](const ScopeRow& scope) { return timeline.text(scope.name) != "load"; });
    return loads;
}

/// Adds a span that does not begin before those that came before it.
void addSpan(LoadStage& stage, const base::SpanEvent& span) {
    stage.begin = stage.spans == 0 ? span.begin : stage.begin;
    const base::TimeNs covered = stage.spans == 0 ? span.begin : std::max(stage.end, span.begin);
    stage.busy += std::max<base::TimeNs>(0, span.end - covered);
    stage.end = stage.spans == 0 ? span.end : std::max(stage.end, span.end);
    stage.bytes += span.bytes;
    ++stage.spans;
}

} // namespace

std::size_t loadCount(const RunTimeline& timeline) {
    return loadPhases(timeline).size();
}

LoadStages loadStages(const RunTimeline& timeline, std::size_t index) {
    LoadStages load;
    const std::vector<ScopeRow> phases = loadPhases(timeline);
    const bool known = index < phases.size();
    if (known) {
        load.begin = phases[index].begin;
        load.end = phases[index].end < 0 ? timeline.end() : phases[index].end;
    }
    std::map<std::uint32_t, LoadStage> stages;
    for (const base::SpanEvent& span : timeline.kernels().spans()) {
        // On a virtual clock the next load may begin in the instant in which this one ends.
        if (!known || (span.begin >= load.begin && (span.begin < load.end || span.end <= load.end))) {
            LoadStage& stage = stages[span.lane.value];
            stage.name = std::string(timeline.text(span.lane.value));
            addSpan(stage, span);
        }
    }
    for (auto& [lane, stage] : stages) {
        stage.bytesPerSecond =
            stage.busy > 0 ? static_cast<double>(stage.bytes) * 1e9 / static_cast<double>(stage.busy) : 0;
        if (!known) {
            load.begin = load.stages.empty() ? stage.begin : std::min(load.begin, stage.begin);
            load.end = std::max(load.end, stage.end);
        }
        load.stages.push_back(std::move(stage));
    }
    std::ranges::stable_sort(load.stages, {}, &LoadStage::begin);
    load.peak = timeline.memory().peak(load.begin, load.end + 1);
    load.resident = timeline.memory().at(load.end);
    for (MemoryGroup& group : groupAlive(timeline, load.end, GroupBy::Category).children) {
        if (group.category == base::MemoryCategory::Weights) {
            load.parts = std::move(group.children);
        }
    }
    return load;
}

} // namespace vitrine::profiler

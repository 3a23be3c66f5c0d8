// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/token_place.h"

#include <algorithm>

#include "engine/workload/precision/text_scorer.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::ui {

std::optional<TimeRange> whenScored(const profiler::RunTimeline& timeline, std::size_t format, std::size_t token) {
    const std::vector<profiler::ScopeRow> phases = profiler::scopesOfKind(timeline, base::ScopeKind::Phase);
    const auto phase = std::ranges::find_if(phases, [&](const profiler::ScopeRow& row) {
        return timeline.text(row.name) == engine::kScorePhase && row.index == static_cast<std::int32_t>(format);
    });
    if (phase == phases.end() || token == 0) {
        return std::nullopt;
    }
    // The token before it made its probabilities.
    auto row = static_cast<std::int64_t>(token) - 1;
    const base::TimeNs end = phase->end < 0 ? timeline.end() : phase->end;
    for (const profiler::ScopeRow& step :
         profiler::childScopes(timeline, phase->id, base::ScopeKind::Step, phase->begin, end)) {
        if (row < step.tokens) {
            return TimeRange{step.begin, step.end < 0 ? timeline.end() : step.end};
        }
        row -= step.tokens;
    }
    return std::nullopt;
}

bool recordsKernels(const profiler::RunTimeline& timeline) {
    return std::ranges::any_of(timeline.kernels().spans(), [&](const base::SpanEvent& span) {
        return timeline.text(span.lane.value) == "Kernels";
    });
}

} // namespace vitrine::ui

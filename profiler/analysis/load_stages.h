// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a checkpoint was loaded: the stages Read, Copy and Expand with their rates, and what stays resident by part.

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analysis/memory_groups.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

class RunTimeline;

struct LoadStage {
    std::string name; ///< the spans' lane: "Read", "Copy", "Expand"
    std::uint64_t bytes = 0;
    std::size_t spans = 0;
    base::TimeNs begin = 0, end = 0;
    base::TimeNs busy = 0;     ///< length of the union of its spans
    double bytesPerSecond = 0; ///< bytes over busy; 0 when nothing took time
};

struct LoadStages {
    base::TimeNs begin = 0, end = 0; ///< of the phase "load", else of all stages
    std::vector<LoadStage> stages;   ///< in the order of their begins
    MemoryColumn peak;               ///< while loading
    base::CategoryBytes resident{};  ///< when it ended
    std::vector<MemoryGroup> parts;  ///< of the weights at that time, largest first
};

/// The first load of a run; `index` picks a later one (`load --weights both` loads twice in one run).
LoadStages loadStages(const RunTimeline& timeline, std::size_t index = 0);
std::size_t loadCount(const RunTimeline& timeline);

} // namespace vitrine::profiler

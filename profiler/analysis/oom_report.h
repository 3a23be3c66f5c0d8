// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Why a run went out of memory: what asked for how much, what held the memory, and what the step before held at the
// same place. Pure functions over an immutable timeline, whose rows they point to; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analysis/memory_groups.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

class RunTimeline;

struct OomReport {
    base::OutOfMemoryEvent event;
    std::size_t failure = 0;    ///< its number in the run
    std::uint64_t free = 0;     ///< budget minus held
    std::uint64_t missing = 0;  ///< what was asked for beyond `free`
    std::uint64_t unused = 0;   ///< reserved by the allocator, in no allocation
    double fragmentation = 0;   ///< 0: what was not in use was one block
    base::CategoryBytes held{}; ///< bottom to top; adds up to the timeline's total at the failure

    bool incomplete = false; ///< records were lost before the failure: `held` may be wrong

    const ScopeRow* op = nullptr;    ///< innermost scopes around the failure; null: none
    const ScopeRow* phase = nullptr; ///< "loss", "load"
    const ScopeRow* step = nullptr;
    const ScopeRow* before = nullptr; ///< the step of the same kind before it
    /// The instant of `before` to compare with: just before it got the same tensor, else the most that the same op
    /// held, else its peak.
    base::TimeNs beforeTime = 0;
    base::CategoryBytes heldBefore{}; ///< at that instant
};

/// Of outOfMemory()[failure]; throws Internal when there is none.
OomReport oomReport(const RunTimeline& timeline, std::size_t failure);

/// What was held at a failure, before it was freed.
MemoryGroup groupHeld(const RunTimeline& timeline, std::size_t failure, GroupBy by);

/// One phase of the step that failed over the same phase of the step before.
struct PhasePair {
    ScopeRow phase;                         ///< of the step that failed; the step itself where it has no phases
    double from = 0, to = 0;                ///< on an axis from 0 to 1: as long as the longer of the two
    std::vector<std::uint64_t> now, before; ///< largest totals, evenly; a phase that was cut short has fewer
};

/// In order, up to the phase that failed, about `points` totals in all; empty without a step before.
std::vector<PhasePair> phasePairs(const RunTimeline& timeline, const OomReport& report, int points);

} // namespace vitrine::profiler

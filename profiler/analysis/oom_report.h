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
    std::uint64_t idle = 0;     ///< reserved for a purpose by `event.arena`, in no allocation
    std::uint64_t unused = 0;   ///< reserved for no purpose, in no allocation
    double fragmentation = 0;   ///< of `free` and `unused`; 0: they were one block
    base::CategoryBytes held{}; ///< bottom to top; adds up to the timeline's total at the failure

    bool incomplete = false; ///< records were lost before the failure: `held` may be wrong

    const ScopeRow* op = nullptr; ///< innermost scopes around the failure; null: none
    const ScopeRow* layer = nullptr;
    const ScopeRow* phase = nullptr; ///< "loss", "load"
    const ScopeRow* step = nullptr;
    /// The step of the same kind before it. Of a failure outside of steps: the last step of its phase; what was asked
    /// for then is for the step that would have come next.
    const ScopeRow* before = nullptr;
    std::int64_t tokensDone = 0; ///< of the steps of the same kind in this phase before the one that failed
    /// The instant to compare with. Of `before`: just before it got the same tensor, else the most that the same op
    /// held, else its peak. Without `before` the beginning of the phase, or of the run.
    base::TimeNs beforeTime = 0;
    base::CategoryBytes heldBefore{}; ///< at that instant
    std::uint64_t reservedBefore = 0; ///< of the budget at that instant

    /// What failed is what a step would have begun with.
    bool betweenSteps() const { return step == nullptr && before != nullptr; }
};

/// Of outOfMemory()[failure]; throws Internal when there is none.
OomReport oomReport(const RunTimeline& timeline, std::size_t failure);

/// What was held at a failure, before it was freed.
MemoryGroup groupHeld(const RunTimeline& timeline, std::size_t failure, GroupBy by);

/// One phase of the step that failed over the same phase of the step before. Between steps: the last step, up to the
/// failure, over the one before it.
struct PhasePair {
    ScopeRow phase;                         ///< of the later step; the step itself where it has no phases
    double from = 0, to = 0;                ///< on an axis from 0 to 1: as long as the longer of the two
    std::vector<std::uint64_t> now, before; ///< largest totals, evenly; a phase that was cut short has fewer
};

/// In order, up to the phase that failed, about `points` totals in all; empty without a step before.
std::vector<PhasePair> phasePairs(const RunTimeline& timeline, const OomReport& report, int points);

} // namespace vitrine::profiler

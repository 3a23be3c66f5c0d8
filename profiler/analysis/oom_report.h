// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The "Why out of memory" page: what asked for how much, what held the memory, what changed since the step before.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/analysis/memory_groups.h"
#include "profiler/memory_timeline.h"

namespace vitrine::profiler {

/// One category at the failure and at the same place of the step before.
struct CategoryChange {
    base::MemoryCategory category = base::MemoryCategory::Other;
    std::uint64_t before = 0, now = 0; ///< bytes; `now` counts the request that failed in its category
};

/// One phase of the step that failed ("forward", "loss"), at its peak, and the same phase of the step before.
struct PhaseChange {
    std::string phase; ///< "whole step" where steps have no phases
    std::optional<std::uint64_t> before;
    std::uint64_t now = 0;
    std::string words; ///< "forward: peak 33.35 GiB, 24.10 GiB in step 2 (+9.25 GiB, most of it activations)"
};

struct OomReport {
    base::OutOfMemoryEvent event;
    std::string tensor;           ///< what was asked for
    std::uint64_t held = 0;       ///< bytes, as the failed allocation counted
    std::uint64_t free = 0;       ///< budget minus held
    std::uint64_t missing = 0;    ///< what was asked for beyond `free`
    base::CategoryBytes heldBy{}; ///< the bar, bottom to top; adds up to the timeline's total at the failure
    std::string sentence; ///< "Step 3 asked for 36.82 GiB to hold grad_logits. Only 15.64 GiB of ... were free."
    std::string cause;    ///< the largest holder, and how it grew
    MemoryGroup byCategory, byLayer, byOp;

    std::string step;         ///< "step 3"; empty outside of steps
    std::string previousStep; ///< "step 2"; empty: there was none
    std::int64_t tokens = 0, previousTokens = 0;
    std::vector<CategoryChange> changes; ///< largest growth first; empty without a previous step
    std::vector<PhaseChange> phases;     ///< in order
};

/// Of outOfMemory()[index]; throws Internal when there is none.
OomReport oomReport(const MemoryTimeline& timeline, std::size_t index);

/// The page as plain text, for the clipboard.
std::string oomText(const OomReport& report);

} // namespace vitrine::profiler

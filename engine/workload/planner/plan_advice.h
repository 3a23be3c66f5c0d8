// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a plan that does not fit is told: the changes of its options that would make it fit, as `vitrine plan` gives
// them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/planner/plan_changes.h"

namespace vitrine::engine {

struct PlanAdvice {
    PlanPrice before;                ///< of the plan itself
    std::vector<PlanChange> changes; ///< each of them fits, the nearest first; empty: none was found
};

/// Searches for at most `most` changes with which `planned`, which does not fit, does. Takes up to a second, and longer
/// for batches of many requests. Throws Cancelled.
PlanAdvice planAdvice(const Experiment& planned, std::size_t most, const base::StopToken& stop);

/// A row for each change: "options" (names and values as an experiment file has them), "reserved_bytes",
/// "step_seconds", "less_work" (part of the work is given up), "other_device".
nlohmann::json planAdviceJson(const PlanAdvice& advice, const Experiment& planned);
/// A table of the options to add to the command, with the memory and the step time of each; a sentence where there are
/// none.
std::string planAdviceText(const PlanAdvice& advice, const Experiment& planned);

} // namespace vitrine::engine

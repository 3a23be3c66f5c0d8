// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Problems and judges as the options name them.

#include <memory>

#include "engine/rl/problems/problem.h"
#include "engine/rl/rewards/rewarder.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Throws BadInput "NAME: KEY: what" for options of problems that do not go together.
void checkProblems(const Experiment& experiment, const std::string& name);

/// Those of a task, of a file, or of prompt_length. Throws BadInput.
std::unique_ptr<ProblemSource> chosenProblems(const Run& run, const ModelSource& source);
/// A command, or the source itself, which outlives it.
std::unique_ptr<Rewarder> chosenRewarder(const Run& run, const ProblemSource& problems);
/// "task sums", "checker number", "command ./judge": for results.
std::string rewardSourceName(const Experiment& experiment);

} // namespace vitrine::engine

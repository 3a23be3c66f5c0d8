// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a run of the queue reports while it works and when it ends, what it is planned to take, and where it goes on.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/stop.h"
#include "engine/workload/planner/plan_price.h"
#include "engine/workload/sweep/run_queue.h"

namespace vitrine::engine {

/// A live value: "loss", "tokens_per_second", "eval_step" and then "eval_loss"; of a run that earns rewards "reward"
/// and "eval_reward". True where an evaluation came.
bool takeMetric(QueuedRun& run, std::string_view name, double value);
/// "Training, loss ..", "Step 3, reward ..": steps that were done, of all.
void takeProgress(QueuedRun& run, std::string_view what, std::uint64_t done, std::uint64_t total);
/// The results of an ended run, JSON: evaluations, the last loss or reward, steps, the peak, and what failed of memory.
void takeResults(QueuedRun& run, std::string_view metricsJson);

/// What the planner says of an experiment. `plan` is the same experiment as a plan of the machine that will run it.
/// Where it does not fit, the nearest change is searched: single changes, then pairs, by time. Throws Cancelled.
QueuePrice priceQueued(const Experiment& experiment, const Experiment& plan, PlanPricer& pricer,
                       const base::StopToken& stop);

/// A training run as JSON that goes on from the latest checkpoint of its output folder; nothing where there is none.
std::optional<std::string> fromLastCheckpoint(const std::string& spec);

/// A training run as JSON that takes the place of what its earlier try left in the output folder; nothing where it
/// leaves nothing.
std::optional<std::string> overItself(const std::string& spec);

/// An interrupted run waits again: with the experiment that fromLastCheckpoint() gave, or from its beginning, without
/// what it had reported.
void goOn(RunQueue& queue, std::int64_t number, const std::optional<std::string>& fromCheckpoint);

} // namespace vitrine::engine

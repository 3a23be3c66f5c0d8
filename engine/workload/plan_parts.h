// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the plans of several workloads share. A plan runs the workload's own code on Meta, so it makes the same
// allocations as a run.

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "engine/workload/run_setup.h"

namespace vitrine::engine {

/// The error as JSON with the fields message, what, requested, budget, held, largest_free and holders.
nlohmann::json outOfMemoryJson(const base::OutOfMemory& error);

/// Adds memory metrics of a plan that does not fit: how much it needs without a budget (`unbounded`), and how much is
/// missing in the budget of `bounded`.
void addNeed(nlohmann::json& metrics, kernels::Context& bounded, kernels::Context& unbounded);

/// The plans of the workloads "generate" and "batch". Each fills run.metrics. A cancelled plan leaves the metrics that
/// it had by then, without "fits". The metric "step_seconds_estimate" of generate is the time of the last decode step.
/// When max_new_tokens is 1, there is no decode step, and it is the time of the longest prefill step.
void planGenerate(const Run& run);
void planBatch(const Run& run);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the plans of several workloads share. A plan runs the workload's own code on Meta, so it makes the same
// allocations as a run.

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The error as JSON with the fields message, what, requested, budget, held, largest_free and holders.
nlohmann::json outOfMemoryJson(const base::OutOfMemory& error);

/// Adds memory metrics of a plan that does not fit: how much it needs without a budget (`unbounded`), and how much is
/// missing in the budget of `bounded`.
void addNeed(nlohmann::json& metrics, kernels::Context& bounded, kernels::Context& unbounded);

/// Adds how many parameters the model has, and how many devices hold what the plan in `whole` has allocated. `bounded`
/// is the plan of one device; it may be `whole` itself. Weights and cache are divided evenly over the devices, by
/// layers, experts or sequences. What else the plan allocates each device holds by itself.
void addDevices(nlohmann::json& metrics, const ModelConfig& config, kernels::Context& bounded, kernels::Context& whole);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What each rank of a run took: the result "ranks", a row for each.

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Adds a row for each rank of the context's group. Does nothing where there is one rank. Called by runMeasured().
void addRankMetrics(nlohmann::json& metrics, kernels::Context& leader);

/// The same of a plan. Ranks whose parts have the same sizes are priced once: `price` runs the plan on a context that
/// stands for such a rank, without a budget and without a trace, and returns the seconds of loading, which are no part
/// of the shares. `leader` has been priced, and loaded for `leaderLoad` seconds.
void addPlannedRanks(const Run& run, const ModelConfig& config, kernels::Context& leader, double leaderLoad,
                     const std::function<double(const Run& quiet, kernels::Context& meta)>& price);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What plans of workloads share. A plan runs the workload's own code on Meta, so what it predicts is what a run would
// allocate.

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// message, what, requested, budget, held, largest_free, holders.
nlohmann::json outOfMemoryJson(const base::OutOfMemory& error);

/// Memory metrics of what does not fit: as if the budget had no end, and how much is missing.
void addNeed(nlohmann::json& metrics, kernels::Context& bounded, kernels::Context& unbounded);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a plan says of a run on this machine, so that plans and measurements can be held against each other later.

#include <cstdint>
#include <optional>

#include "base/stop.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::app {

/// The bytes of tensors at the peak of a run of this experiment on this machine. Nothing of plans, of workloads without
/// a plan, of those with many answers (all of their steps would be planned), and of a GPU that no profile describes.
/// Takes as long as the plan. Throws Cancelled.
std::optional<std::uint64_t> predictedPeak(const engine::Experiment& experiment, const base::StopToken& stop);

} // namespace vitrine::app

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The plan of a fine-tuning run: one step on Meta, and the search for the longest context.

#include <functional>

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// One step of a training on a Meta context, from loading on. Returns its seconds.
using PlannedStep = std::function<double(const Run& run, kernels::Context& meta)>;

/// Prices the step on `context`: fits, step_seconds_estimate and memory. Where it does not fit, what it would need.
void addPlannedStep(const Run& run, kernels::Context& context, const PlannedStep& step);

void planFinetune(const Run& run);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Plans of the workload rl: a step on a device that computes nothing, and searches for the longest answer and the
// largest batch of rollouts that fit.

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Fills run.metrics. Throws BadInput for what a run refuses too.
void planRl(const Run& run);

} // namespace vitrine::engine

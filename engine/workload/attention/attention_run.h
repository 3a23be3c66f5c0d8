// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Runs attention with programs on tensors from a file or random ones, writes what it computes and times it. Fills
/// run.metrics.
void runAttention(const Run& run);

} // namespace vitrine::engine

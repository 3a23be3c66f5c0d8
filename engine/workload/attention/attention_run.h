// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Runs the workload "attention": attention with programs on tensors from a file or on random tensors. Writes the
/// computed tensors to a file when the experiment asks for it, measures the time and fills run.metrics.
void runAttention(const Run& run);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Plans the workload "generate" and fills run.metrics. A cancelled plan leaves the metrics that it had by then,
/// without "fits". The metric "step_seconds_estimate" is the time of the last decode step. When max_new_tokens is 1,
/// there is no decode step, and it is the time of the longest prefill step.
void planGenerate(const Run& run);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The plan of generate. Fills run.metrics; cancelled, it leaves what it knew by then, without "fits".
/// "step_seconds_estimate" is the time of the last decode step; where max_new_tokens is 1 nothing is decoded, and it is
/// the time of the longest prefill step.
void planGenerate(const Run& run);

} // namespace vitrine::engine

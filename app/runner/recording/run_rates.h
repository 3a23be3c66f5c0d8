// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a run measured of its ops becomes the times of later plans for this machine.

#include <string>

#include "engine/workload/experiment/experiment.h"
#include "kernels/core/op.h"
#include "kernels/core/op_rates.h"
#include "profiler/timeline/run_timeline.h"
#include "sessions/session_file.h"

namespace vitrine::app {

/// The classes of the ops of a run of an experiment, which its recorded ops do not say.
kernels::RunRateClasses rateClassesOf(const engine::Experiment& experiment);

/// The rates that a recorded run measured.
kernels::OpRates ratesOf(const profiler::RunTimeline& timeline, const kernels::RunRateClasses& classes);

/// Joins what `run` of the session file measured with the rates that this machine keeps (kernels::ownRatesFile). Does
/// nothing for plans, for runs with other kernels than the program's own, and for very long runs, whose short
/// neighbours have said the same. Two programs may do it at once: the later one wins. Never throws: what cannot be
/// read or written is named in the log.
void keepOpRates(const engine::Experiment& experiment, const std::string& sessionFile, sessions::RunId run);

} // namespace vitrine::app

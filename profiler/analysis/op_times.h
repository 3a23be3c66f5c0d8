// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the time of a phase went: its ops by name. Pure function over an immutable timeline; any thread.

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace vitrine::profiler {

class RunTimeline;

struct OpTime {
    std::string name;
    base::TimeNs time = 0;
    std::int64_t calls = 0;
};

struct PhaseOps {
    std::vector<OpTime> ops; ///< longest first
    base::TimeNs other = 0;  ///< of the phase, in no op
    base::TimeNs total = 0;  ///< of the phase
};

/// Of the last phase with that name, by the scopes of ops as the host recorded them: right where ops run on the host.
/// Empty where there is no such phase or it has no scopes of ops.
PhaseOps phaseOps(const RunTimeline& timeline, std::string_view phase);

} // namespace vitrine::profiler

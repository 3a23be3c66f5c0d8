// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a measured range of time says about device memory.

#include <cstdint>

#include "base/clock.h"

namespace vitrine::profiler {

class RunTimeline;

struct RangeStatistics {
    base::TimeNs begin = 0, end = 0;
    std::int64_t change = 0; ///< total at the end minus total at the begin, bytes
    std::uint64_t peak = 0;
    base::TimeNs peakTime = 0;
    double mean = 0; ///< bytes, over time
    std::uint64_t births = 0, deaths = 0;
    bool incomplete = false; ///< records were lost before its end: no number here is certain
};

/// Of [begin, end); begin and end may come in any order.
RangeStatistics rangeStatistics(const RunTimeline& timeline, base::TimeNs begin, base::TimeNs end);

} // namespace vitrine::profiler

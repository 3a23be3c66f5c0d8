// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a measured range of time says about device memory.

#include <cstdint>
#include <string>

#include "profiler/memory_timeline.h"

namespace vitrine::profiler {

struct RangeStatistics {
    base::TimeNs begin = 0, end = 0;
    std::int64_t change = 0; ///< total at the end minus total at the begin, bytes
    base::CategoryBytes before{}, after{};
    std::uint64_t peak = 0, lowest = 0;
    base::TimeNs peakTime = 0;
    base::CategoryBytes atPeak{};
    double mean = 0; ///< bytes, over time
    std::uint64_t births = 0, deaths = 0;
};

/// Of [begin, end); begin and end may come in any order.
RangeStatistics rangeStatistics(const MemoryTimeline& timeline, base::TimeNs begin, base::TimeNs end);

/// "2.79 s   +12.66 GiB   peak 33.35 GiB"
std::string rangeBubble(const RangeStatistics& range);
/// "Range 2.79 s: +12.66 GiB, peak 33.35 GiB at 10.7 s, 146 allocations, 120 frees"
std::string rangeSentence(const RangeStatistics& range);

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/range_statistics.h"

#include <utility>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

RangeStatistics rangeStatistics(const RunTimeline& timeline, base::TimeNs begin, base::TimeNs end) {
    if (end < begin) {
        std::swap(begin, end);
    }
    RangeStatistics range;
    range.begin = begin;
    range.end = end;
    const std::uint64_t before = totalBytes(timeline.memory().at(begin)), after = totalBytes(timeline.memory().at(end));
    range.change = static_cast<std::int64_t>(after - before);
    const MemoryColumn peak = timeline.memory().peak(begin, end);
    range.peak = peak.maxTotal;
    range.peakTime = peak.maxTime;
    range.incomplete = peak.incomplete;
    const RangeTotals totals = timeline.memory().totals(begin, end);
    range.births = totals.births;
    range.deaths = totals.deaths;
    range.mean = end > begin ? totals.byteNs / static_cast<double>(end - begin) : static_cast<double>(before);
    return range;
}

} // namespace vitrine::profiler

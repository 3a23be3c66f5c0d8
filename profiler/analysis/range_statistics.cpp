// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/range_statistics.h"

#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "base/units.h"
#include "profiler/analysis/words.h"

namespace vitrine::profiler {

namespace {

std::uint64_t totalOf(const base::CategoryBytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

} // namespace

RangeStatistics rangeStatistics(const MemoryTimeline& timeline, base::TimeNs begin, base::TimeNs end) {
    if (end < begin) {
        std::swap(begin, end);
    }
    RangeStatistics range;
    range.begin = begin;
    range.end = end;
    range.before = timeline.at(begin);
    range.after = timeline.at(end);
    range.change = static_cast<std::int64_t>(totalOf(range.after) - totalOf(range.before));
    const MemoryColumn peak = timeline.peak(begin, end);
    range.peak = peak.maxTotal;
    range.peakTime = peak.maxTime;
    range.atPeak = peak.atMax;
    range.lowest = peak.minTotal;
    const RangeTotals totals = timeline.totals(begin, end);
    range.births = totals.births;
    range.deaths = totals.deaths;
    range.mean =
        end > begin ? totals.byteNs / static_cast<double>(end - begin) : static_cast<double>(totalOf(range.before));
    return range;
}

std::string rangeBubble(const RangeStatistics& range) {
    return fmt::format("{}   {}   peak {}", base::formatDuration(range.end - range.begin), signedBytes(range.change),
                       base::formatBytes(range.peak));
}

std::string rangeSentence(const RangeStatistics& range) {
    return fmt::format(
        "Range {}: {}, peak {} at {}, {} {}, {} {}", base::formatDuration(range.end - range.begin),
        signedBytes(range.change), base::formatBytes(range.peak), base::formatDuration(range.peakTime),
        base::formatGrouped(static_cast<std::int64_t>(range.births)), range.births == 1 ? "allocation" : "allocations",
        base::formatGrouped(static_cast<std::int64_t>(range.deaths)), range.deaths == 1 ? "free" : "frees");
}

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/peaks.h"

#include <algorithm>
#include <limits>

namespace vitrine::profiler {

namespace {

constexpr std::uint64_t kMaxPieces = 8192;
constexpr std::uint64_t kStandOutShare = 64;

/// For each piece the lowest point between it and the next higher one before it (0 when there is none).
std::vector<std::uint64_t> valleysBefore(const std::vector<CurvePiece>& curve) {
    struct Higher {
        std::uint64_t max = 0;
        std::uint64_t lowestAfter = 0; ///< lowest point between the one below it on the stack and it
    };
    std::vector<Higher> stack;
    std::vector<std::uint64_t> valleys(curve.size(), 0);
    for (std::size_t i = 0; i < curve.size(); ++i) {
        std::uint64_t lowest = i == 0 ? curve[i].min : std::min(curve[i].min, curve[i - 1].min);
        while (!stack.empty() && stack.back().max < curve[i].max) {
            lowest = std::min(lowest, stack.back().lowestAfter);
            stack.pop_back();
        }
        valleys[i] = stack.empty() ? 0 : lowest;
        stack.push_back({curve[i].max, lowest});
    }
    return valleys;
}

} // namespace

std::vector<CurvePiece> curveOf(const PyramidView& pyramid, const MemoryEvents& events) {
    std::uint64_t step = 1;
    while (events.size() / step > kMaxPieces) {
        step = step == 1 ? kLeafEvents : step * kFanOut;
    }
    std::vector<CurvePiece> curve;
    for (std::uint64_t first = 0; first < events.size(); first += step) {
        const MemoryColumn column =
            pyramid.extremes(events, first, std::min<std::uint64_t>(first + step, events.size()));
        curve.push_back({column.minTotal, column.maxTotal, column.maxTime});
    }
    return curve;
}

std::vector<base::TimeNs> findPeaks(const std::vector<CurvePiece>& curve, std::size_t limit) {
    if (curve.empty()) {
        return {};
    }
    const std::vector<std::uint64_t> before = valleysBefore(curve);
    std::vector<CurvePiece> reversed(curve.rbegin(), curve.rend());
    std::vector<std::uint64_t> after = valleysBefore(reversed);
    std::ranges::reverse(after);
    const std::uint64_t highest = std::ranges::max_element(curve, {}, &CurvePiece::max)->max;
    std::vector<CurvePiece> peaks;
    for (std::size_t i = 0; i < curve.size(); ++i) {
        const std::uint64_t valley = std::max(before[i], after[i]);
        if (curve[i].max > 0 &&
            curve[i].max - std::min(valley, curve[i].max) >= std::max<std::uint64_t>(1, highest / kStandOutShare)) {
            peaks.push_back(curve[i]);
        }
    }
    std::ranges::stable_sort(peaks, std::greater(), &CurvePiece::max);
    peaks.resize(std::min(limit, peaks.size()));
    std::vector<base::TimeNs> times(peaks.size());
    std::ranges::transform(peaks, times.begin(), &CurvePiece::maxTime);
    return times;
}

} // namespace vitrine::profiler

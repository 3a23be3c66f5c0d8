// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The peaks that "go to next peak" visits: local maxima of the total that stand out.

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "profiler/timeline/pyramid.h"

namespace vitrine::profiler {

/// A stretch of the curve.
struct CurvePiece {
    std::uint64_t min = 0, max = 0;
    base::TimeNs maxTime = 0;
};

/// The curve in at most some thousand pieces.
std::vector<CurvePiece> curveOf(const PyramidView& pyramid, const MemoryEvents& events);

/// Instants of the maxima from which the curve falls by at least 1/64 of its largest value before it rises higher again
/// (on both sides), largest first, at most `limit`. The first is the first instant of the largest value.
std::vector<base::TimeNs> findPeaks(const std::vector<CurvePiece>& curve, std::size_t limit);

} // namespace vitrine::profiler

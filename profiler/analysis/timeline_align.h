// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "profiler/timeline/timeline_rows.h"

// Two runs on one axis, so that their memory can be laid over each other: by phase, by step or by time.
//
// The axis is a row of segments. A segment is a stretch of A, of B or of both, and inside it time runs evenly in each.
// By time it is as long as the longer of the two. By phase and by step both runs are stretched to the same length, the
// mean of the two, and a named segment takes at least kSmallestPhase of the axis (less where there are many), so that
// short phases can be seen. So load stands over load, prefill over prefill, and what only one run has stands over
// nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vitrine::profiler {

class RunTimeline;

enum class AlignBy : std::uint8_t { Phase, Step, Time };

struct TimeStretch {
    base::TimeNs begin = 0, end = 0;
};

struct AlignedSegment {
    std::string name; ///< "load", "step 3"; empty for what lies between
    std::optional<TimeStretch> a, b;
    base::TimeNs position = 0, length = 0; ///< on the common axis, ns
};

/// The share of the axis that a phase has at least.
inline constexpr double kSmallestPhase = 0.08;

class Alignment {
public:
    enum class Widths : std::uint8_t { Longer, Mean };

    Alignment() = default;
    explicit Alignment(std::vector<AlignedSegment> segments, Widths widths = Widths::Longer);

    const std::vector<AlignedSegment>& segments() const { return segments_; }
    base::TimeNs length() const;

    /// The time of a run at a position of the axis; empty where the run has nothing.
    std::optional<base::TimeNs> timeInA(base::TimeNs position) const;
    std::optional<base::TimeNs> timeInB(base::TimeNs position) const;
    /// Where a time of a run stands on the axis.
    base::TimeNs positionOfA(base::TimeNs time) const;
    base::TimeNs positionOfB(base::TimeNs time) const;

private:
    using Side = std::optional<TimeStretch> AlignedSegment::*;
    std::optional<base::TimeNs> timeIn(Side side, base::TimeNs position) const;
    base::TimeNs positionOf(Side side, base::TimeNs time) const;

    std::vector<AlignedSegment> segments_;
};

/// By phase: the outermost phases, matched by name in their order. By step: the steps, matched by name and number.
/// Without any match, and by time: one segment, from 0, not stretched.
Alignment align(const RunTimeline& a, const RunTimeline& b, AlignBy by);

/// What a column of the common axis shows: each run's peak in it, with its split, and the difference.
struct DifferenceColumn {
    std::optional<MemoryColumn> a, b;
    std::int64_t change = 0; ///< B's largest total minus A's; 0 where one is missing
};

/// `columns` pieces of [begin, end) of the axis.
std::vector<DifferenceColumn> difference(const RunTimeline& a, const RunTimeline& b, const Alignment& alignment,
                                         base::TimeNs begin, base::TimeNs end, int columns);

/// "Records of B were lost, so its peak is uncertain."; empty when both peaks are certain.
std::string lossSentence(const RunTimeline& a, const RunTimeline& b);

} // namespace vitrine::profiler

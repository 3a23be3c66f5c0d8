// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where an instant lies on the horizontal axis of a lane, in pixels from the left edge of the plot. Two kinds: time,
// where equal lengths are equal durations, and events, where every allocation or free takes the same room, so that a
// busy millisecond is as readable as an idle second. Immutable; any thread.

#include <vector>

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/time_cursor.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

enum class AxisKind : std::uint8_t { Time, Events };

/// On an axis of steps each one takes as long as this, so that strips made for time serve it as well.
inline constexpr base::TimeNs kStepLength = 1000;

class AxisMap {
public:
    AxisMap() = default;
    static AxisMap ofTime(TimeRange range, double width);
    /// Falls back to time when the range holds fewer than two events.
    static AxisMap ofEvents(const profiler::RunTimeline& timeline, TimeRange range, double width);
    /// The same with other instants as events, by time: begins of kernels.
    static AxisMap ofTimes(const std::vector<base::TimeNs>& times, TimeRange range, double width);

    AxisKind kind() const { return kind_; }
    TimeRange range() const { return range_; }
    double width() const { return width_; }
    double x(base::TimeNs time) const;
    base::TimeNs time(double x) const;
    /// Shortest stretch of time that one pixel stands for.
    double nsPerPixel() const;
    std::uint64_t firstEvent() const { return firstEvent_; }
    std::uint64_t lastEvent() const { return lastEvent_; }

    /// The columns of the timeline for this axis, `count` of them.
    std::vector<profiler::MemoryColumn> columns(const profiler::RunTimeline& timeline, int count) const;

private:
    template <class TimeOf> void setKnots(double most, TimeOf timeOf);
    AxisKind kind_ = AxisKind::Time;
    TimeRange range_;
    double width_ = 1;
    std::uint64_t firstEvent_ = 0, lastEvent_ = 0;
    std::vector<base::TimeNs> knots_; ///< times at equal distances from 0 to width (events)
};

/// A grid for the axis of time: instants at round numbers, 60 to 120 px apart where that is possible.
struct TimeGrid {
    base::TimeNs step = 1;
    int minor = 5; ///< small ticks in a step
};
TimeGrid timeGrid(TimeRange range, double width, double wanted = 100);

/// A grid for bytes: binary round numbers, at most `lines` of them, that end at or above `top`.
struct ByteGrid {
    std::uint64_t step = 1;
    std::uint64_t top = 1;
    std::uint64_t unit = 1; ///< bytes of the unit that the labels count
    const char* unitName = "B";
};
ByteGrid byteGrid(std::uint64_t top, int lines = 6);

} // namespace vitrine::ui

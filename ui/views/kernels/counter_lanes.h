// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The lanes of hardware counters below the trace of the Kernels view: traffic of the device memory, busy
// multiprocessors, the tensor pipe. A counter that a run did not record has no lane.

#include <optional>
#include <string>
#include <vector>

#include "ui/models/common/time_cursor.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

class CurveLane;

class CounterLanes final {
public:
    /// Adds the lanes to `stack`, which owns them. `time` outlives them.
    CounterLanes(TimeCursor* time, LaneStack* stack);

    /// Shows a run in the visible range; null: no run. Samples outside of its `work` count in no fact, and a lane that
    /// has no others is folded. `bytesPerSecond` is the device's bandwidth, 0: not known.
    void show(const TimelinePtr& timeline, std::optional<TimeRange> work, double bytesPerSecond);
    Lane* first() const; ///< other lanes of the trace stand before it

private:
    struct CounterLane {
        CurveLane* lane = nullptr;
        std::vector<std::string> counters;
    };
    void showLane(const CounterLane& shown, const TimelinePtr& timeline, std::optional<TimeRange> work,
                  double bytesPerSecond);

    TimeCursor* time_;
    std::vector<CounterLane> lanes_;
};

} // namespace vitrine::ui

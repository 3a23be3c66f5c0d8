// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Device time as an icicle: step types, layers, ops and kernels, each above what it is made of. Values; any thread.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"

namespace vitrine::profiler {

class RunTimeline;

/// Device time by step type, layer, op and kernel; of the ops' own times where no kernels were recorded.
struct FlameNode {
    std::string name;
    std::int32_t parent = -1;
    int depth = 0;
    double begin = 0, length = 0; ///< ns from the left end; layers by number, all else largest first
    std::uint64_t calls = 0;
    std::int8_t category = -1;
};
struct FlameTree {
    std::vector<FlameNode> nodes; ///< the root first, parents before children
    bool ofKernels = true;
    int depth = 0;
};
using FlameTreePtr = std::shared_ptr<const FlameTree>;
FlameTreePtr flameTree(const RunTimeline& timeline, base::TimeNs begin, base::TimeNs end);
/// Time of the ops that begin in a range, those inside other ops left out.
base::TimeNs timeOfOps(const RunTimeline& timeline, base::TimeNs begin, base::TimeNs end);

} // namespace vitrine::profiler

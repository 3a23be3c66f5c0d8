// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The kernels of a traced run: how often, how long, for which op, how close to the device's bandwidth, and when the
// device had nothing to do. From the spans of the lane "Kernels" (profiler/gpu/gpu_profiler.h).

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"

namespace vitrine::profiler {

class RunTimeline;

/// All launches of one kernel for one op.
struct KernelRow {
    std::string name;
    std::string op;                                              ///< "ExpertMlp"; empty: launched outside of ops
    base::MemoryCategory category = base::MemoryCategory::Other; ///< of the op
    std::uint64_t launches = 0;
    base::TimeNs total = 0, shortest = 0, longest = 0;
    double share = 0; ///< of the time of all kernels
    /// What the op moved and computed, where this kernel is all that the op launched; 0 else.
    std::uint64_t bytes = 0, flops = 0;

    double mean() const { return launches == 0 ? 0 : static_cast<double>(total) / static_cast<double>(launches); }
    double bytesPerSecond() const {
        return total == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(total);
    }
    double flopsPerSecond() const {
        return total == 0 ? 0 : static_cast<double>(flops) * 1e9 / static_cast<double>(total);
    }
};

/// All kernels of one op.
struct KernelOpRow {
    std::string op;
    std::uint64_t calls = 0; ///< scopes with at least one kernel
    std::uint64_t launches = 0;
    base::TimeNs busy = 0;              ///< union of its kernels' times, summed over the calls
    double share = 0;                   ///< of the union of all kernels' times; overlapping ops share more than 1
    std::uint64_t bytes = 0, flops = 0; ///< as the ops' costs say

    double bytesPerSecond() const {
        return busy == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(busy);
    }
    double flopsPerSecond() const {
        return busy == 0 ? 0 : static_cast<double>(flops) * 1e9 / static_cast<double>(busy);
    }
};

/// What the device did for one step.
struct KernelStepRow {
    std::uint64_t scope = 0;
    std::int32_t step = -1;
    std::uint64_t launches = 0;
    base::TimeNs begin = 0, end = 0; ///< of its first and last kernel
    base::TimeNs busy = 0;           ///< union of its kernels' times
    base::TimeNs idle() const { return end - begin - busy; }
};

struct KernelTable {
    std::vector<KernelRow> kernels;   ///< by total time, largest first
    std::vector<KernelOpRow> ops;     ///< by busy time, largest first
    std::vector<KernelStepRow> steps; ///< by begin
    std::uint64_t launches = 0;
    base::TimeNs total = 0;      ///< sum of all kernels' times
    base::TimeNs busy = 0;       ///< union of all kernels' times
    base::TimeNs attributed = 0; ///< union of the times of those that an op launched

    /// 0 to 1; 1 without kernels.
    double attribution() const { return busy == 0 ? 1 : static_cast<double>(attributed) / static_cast<double>(busy); }
};

/// Of the kernels that begin in [begin, end).
KernelTable kernelTable(const RunTimeline& timeline, base::TimeNs begin = 0,
                        base::TimeNs end = std::numeric_limits<base::TimeNs>::max());

/// What the ops of this name (a number for timeline.text) mostly write, as they said when they ran. For runs recorded
/// before ops said it, a guess from the name: activations when it says nothing else.
base::MemoryCategory categoryOfOp(const RunTimeline& timeline, std::uint32_t name);

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The values in which a run's timeline answers. Times are nanoseconds since the run's start, sizes are bytes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/trace.h"

namespace vitrine::profiler {

/// What happened between two pixel borders: the split at the instant of the largest total, so that stacks add up.
struct MemoryColumn {
    std::uint64_t minTotal = 0;
    std::uint64_t maxTotal = 0;
    base::TimeNs maxTime = 0; ///< first instant of maxTotal inside the window
    base::CategoryBytes atMax{};
    std::uint64_t events = 0;
    bool incomplete = false; ///< records were lost before its end: totals may be wrong, a peak may be too low
};

/// What happened to device memory in a range of time.
struct RangeTotals {
    std::uint64_t births = 0, deaths = 0;
    double byteNs = 0; ///< integral of the total over time; divided by the length it is the mean
};

/// One allocation with what is known of its life.
struct AllocationRow {
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    base::TimeNs born = 0;
    base::TimeNs freed = -1; ///< -1: alive at the end of what was read
    std::uint64_t scope = 0;
    std::uint32_t name = 0; ///< index for text()
    base::MemoryCategory category = base::MemoryCategory::Other;
    base::MemorySpace space = base::MemorySpace::Device;
    std::uint8_t dtype = 0;
    std::uint8_t dimensions = 0; ///< of the tensor; entries of `shape`
    std::array<std::int64_t, base::kMaxTraceDimensions> shape{};
    std::uint32_t format = 0; ///< index for text(): of a packed weight, "INT4, groups of 128"; 0: the dtype says it
};

struct ScopeRow {
    std::uint64_t id = 0, parent = 0;
    base::ScopeKind kind = base::ScopeKind::Op;
    std::uint32_t name = 0;
    std::int32_t index = -1;
    std::int64_t tokens = 0;
    base::TimeNs begin = 0, end = -1; ///< -1: still open
    std::uint64_t bytes = 0, flops = 0;
};

/// An allocation, or what several neighbouring allocations that are too small to draw alone look like together.
/// Addresses are the device's, which spread far: draw them at compactAddress; or those of the Stack layout.
struct AllocationShape {
    std::uint64_t addressBegin = 0, addressEnd = 0;
    base::TimeNs begin = 0, end = 0;
    std::uint32_t count = 1; ///< > 1: a hatch with this count
    std::size_t row = 0;     ///< of the allocation when count is 1, of the largest otherwise
};

enum class GroupBy : std::uint8_t { Category, Layer, Op, Dtype };

} // namespace vitrine::profiler

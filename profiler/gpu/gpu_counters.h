// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// NVML's readings as counters of a run, and device memory that is no tracked allocation, as allocations of category
// untracked.

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "profiler/gpu/nvml_monitor.h"

namespace vitrine::profiler {

class GpuCounters {
public:
    explicit GpuCounters(base::TraceSink& sink) : sink_(sink) {}

    /// Records what a reading says, where it changed.
    void write(const GpuReading& reading, base::TimeNs time);

private:
    void put(const char* name, std::optional<double> value, base::TimeNs time);

    base::TraceSink& sink_;
    std::vector<std::pair<const char*, double>> last_;
};

/// Follows used less reserved bytes from the first reading on: what the driver, libraries and loaded code take beyond
/// what the context counted at its start. Small changes and those that do not last two readings are left out:
/// reservations and readings are not made at one instant.
class UntrackedMemory {
public:
    explicit UntrackedMemory(base::TraceSink& sink) : sink_(sink) {}

    /// `used` as the driver counts it, `reserved` as the run does (its first untracked bytes included).
    void see(std::uint64_t used, std::uint64_t reserved, base::TimeNs time);

    std::int64_t growth() const { return static_cast<std::int64_t>(reported_); }

private:
    void report(std::int64_t growth, base::TimeNs time);

    base::TraceSink& sink_;
    std::optional<std::int64_t> base_;      ///< used - reserved at the first reading
    std::optional<std::int64_t> candidate_; ///< of the last reading
    std::uint64_t lastReserved_ = 0;
    struct Block {
        std::uint64_t id = 0, bytes = 0;
    };
    std::vector<Block> blocks_;
    std::uint64_t reported_ = 0;
    std::uint64_t nextId_ = std::uint64_t{1} << 48; ///< far above the ids of a run's tracer
};

} // namespace vitrine::profiler

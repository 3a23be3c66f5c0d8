// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a device did, as its tracing library reports it, and where such records come from. No vendor's headers here.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "profiler/gpu/launch_map.h"

namespace vitrine::profiler {

enum class WorkKind : std::uint8_t { Kernel, Copy, Memset, Sync, Overhead, Graph };
inline constexpr std::size_t kWorkKinds = 6;
/// The lane of its spans: "Kernels", "Copies", "Memsets", "Sync", "Profiler overhead", "Graphs".
std::string_view laneName(WorkKind kind);

/// How a kernel was launched and what it takes.
struct KernelShape {
    std::array<std::uint32_t, 3> grid{}, block{}, cluster{};
    std::uint32_t registers = 0;         ///< of a thread
    std::uint32_t sharedBytes = 0;       ///< of a block, static and dynamic
    std::uint32_t localBytes = 0;        ///< of a thread: spills and arrays
    std::uint32_t maxActiveClusters = 0; ///< 0: no cluster
};

struct DeviceWork {
    WorkKind kind = WorkKind::Kernel;
    base::TimeNs begin = 0; ///< monotonicNs() of the process
    base::TimeNs end = 0;
    std::uint32_t correlation = 0; ///< of the call that launched it
    std::uint32_t stream = 0;      ///< of the device, that ran it
    std::uint64_t node = 0;        ///< of the graph that it is part of, 0: none
    const char* name = "";         ///< valid during the call that hands it over
    std::uint64_t bytes = 0;
    KernelShape shape; ///< of kernels
};

/// How much is traced: nothing, whole graphs, or every kernel, copy and wait.
enum class TraceDetail : std::uint8_t { Nothing, Graphs, Everything };

/// One tracing library at work.
class WorkSource {
public:
    virtual ~WorkSource() = default;
    /// From any thread, at a border of steps. Cheap when nothing changes.
    virtual void setDetail(TraceDetail detail) = 0;
    /// Hands over the records that are complete, roughly in order of time; `last`: all there are. One thread at a time.
    virtual void collect(bool last, const std::function<void(const DeviceWork&)>& take) = 0;
    /// Records that were dropped since the source was opened.
    virtual std::uint64_t lost() const = 0;
    /// Which scope launched what.
    virtual LaunchMap& launches() = 0;
};

/// CUPTI in this process; null with one sentence in `why` when there is none or it refuses. One at a time.
std::unique_ptr<WorkSource> openCupti(std::string& why);

} // namespace vitrine::profiler

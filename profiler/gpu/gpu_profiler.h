// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Adds what a GPU does to a run's trace. It stands between the engine and the run's sink: events pass through, steps
// say when to look closely, and kernels, copies, graphs and counters come back as spans and counters of the same run.
//
//   light  whole graphs in windows and the kernels of a few steps (TraceWindow), and what NVML and the hardware
//          counters say
//   full   in the windows every kernel, copy, fill and wait instead, each under the scope that launched it
//
// Spans go to the lanes "Kernels", "Copies", "Memsets", "Sync", "Profiler overhead", "Graphs"; counters are named
// "gpu.power_w", "gpu.energy_j", "gpu.memory_used_bytes", "gpu.memory_process_bytes", "gpu.sm_clock_hz",
// "gpu.memory_clock_hz", "gpu.temperature_c", "gpu.busy", "gpu.clock_reasons" and counterName's. Device memory that is
// in use without being tracked (contexts, libraries, code, CUPTI's buffers) is reported as allocations of category
// untracked. Whatever the machine refuses becomes a note; the run goes on.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "profiler/gpu/device_work.h"

namespace vitrine::profiler {

struct GpuProfilerOptions {
    bool full = false;
    std::int64_t windowSteps = 20;
    std::int64_t windowPeriod = 200;
    int device = 0;       ///< CUDA's number
    std::string pciBusId; ///< of that device, for NVML; empty: NVML's first
    bool deviceCounters = true;
    base::TimeNs counterInterval = 1'000'000; ///< 100 us to 10 ms
};

/// What one kernel is and did, summed over all its traced launches.
struct KernelSummary {
    std::string name;
    std::uint64_t launches = 0;
    base::TimeNs total = 0;
    KernelShape shape; ///< of its first launch
    bool sameShape = true;
};

class GpuProfiler final : public base::TraceSink {
public:
    /// `next` takes everything; `clock` is the run's. Both outlive this. `source` stands in for CUPTI in tests; without
    /// one CUPTI is opened. Make it before the run's CUDA context, so that its buffers come first.
    GpuProfiler(base::TraceSink& next, const base::MonotonicClock& clock, const GpuProfilerOptions& options,
                std::unique_ptr<WorkSource> source = nullptr);
    ~GpuProfiler() override;                  ///< finishes
    GpuProfiler(const GpuProfiler&) = delete; // threads hold its address
    GpuProfiler& operator=(const GpuProfiler&) = delete;

    base::StringId intern(std::string_view text) override;
    void record(const base::TraceEvent& event) override;
    void stepBegins(std::string_view name, base::ScopeId step) override;
    void stepEnded(base::ScopeId step, std::span<const base::StepScope> scopes) override;
    void replayBegins(std::string_view name, base::ScopeId step) override;

    /// Waits until the hardware counters are sampled, or refused. They start once a context exists; that takes half a
    /// second, in which the driver holds up launches. The end of the first phase (weights have come) waits by itself,
    /// so that what follows is not slowed.
    void waitUntilReady() const;

    /// Ends tracing and hands over what is left; the device must be idle. Once; later calls do nothing.
    void finish();

    /// One sentence for each thing that is off, and why.
    std::vector<std::string> notes() const;
    /// Records of the device that were dropped.
    std::uint64_t lostRecords() const;
    /// By total time, largest first.
    std::vector<KernelSummary> kernels() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The readable name of a kernel: demangled, without its parameters.
std::string kernelName(const char* symbol);

} // namespace vitrine::profiler

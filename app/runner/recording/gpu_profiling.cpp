// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/gpu_profiling.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/results.h"
#include "kernels/cuda/cuda_context.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr base::TimeNs kMicrosecond = 1000;
constexpr std::int64_t kShortestInterval = 100; ///< us

profiler::GpuProfilerOptions optionsOf(const engine::Experiment& experiment) {
    profiler::GpuProfilerOptions options;
    options.full = experiment.text("profile") == "full";
    options.windowSteps = experiment.integer("profile_window");
    options.windowPeriod = experiment.integer("profile_every");
    options.device = static_cast<int>(experiment.integer("device"));
    const std::int64_t interval = experiment.integer("profile_counters");
    options.deviceCounters = interval > 0;
    options.counterInterval = std::max(interval, kShortestInterval) * kMicrosecond;
    for (const kernels::CudaDeviceInfo& device : kernels::cudaDevices()) {
        if (device.ordinal == options.device) {
            options.pciBusId = device.pciBusId;
        }
    }
    return options;
}

json kernelRows(const std::vector<profiler::KernelSummary>& kernels) {
    json rows = json::array();
    for (const profiler::KernelSummary& kernel : kernels) {
        rows.push_back({{"name", kernel.name},
                        {"launches", kernel.launches},
                        {"total_ns", kernel.total},
                        {"grid", kernel.shape.grid},
                        {"block", kernel.shape.block},
                        {"cluster", kernel.shape.cluster},
                        {"registers", kernel.shape.registers},
                        {"shared_bytes", kernel.shape.sharedBytes},
                        {"local_bytes", kernel.shape.localBytes},
                        {"same_shape", kernel.sameShape}});
    }
    return rows;
}

} // namespace

std::unique_ptr<profiler::GpuProfiler> profileGpu(const engine::Experiment& experiment, RunRecording& recording,
                                                  const base::MonotonicClock& clock) {
    const bool profiled = experiment.has("profile") && experiment.text("profile") != "off";
    if (!profiled || engine::backendOf(experiment) != kernels::Backend::Cuda) {
        return nullptr;
    }
    return std::make_unique<profiler::GpuProfiler>(recording.trace(), clock, optionsOf(experiment));
}

void finishGpuProfile(profiler::GpuProfiler& profiler, RunRecording& recording, json& metrics) {
    profiler.finish();
    recording.addLost(profiler.lostRecords());
    if (const std::vector<std::string> notes = profiler.notes(); !notes.empty() && metrics.is_object()) {
        metrics[engine::result::kProfilerNotes.key] = notes;
    }
    if (const auto kernels = profiler.kernels(); !kernels.empty()) {
        recording.setText("gpu.kernels", kernelRows(kernels).dump(-1, ' ', false, json::error_handler_t::replace));
    }
}

} // namespace vitrine::app

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The GPU's side of one run's profile: starts it where the experiment runs on CUDA, and keeps what it found with the
// run.

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "app/runner/recording/run_recording.h"
#include "base/clock.h"
#include "base/trace.h"
#include "profiler/gpu/gpu_profiler.h"

namespace vitrine::engine {
class Experiment;
}

namespace vitrine::app {

/// A profiler before `recording`'s sink, or null: the run is not on CUDA, or its profile is off. Made before the
/// context.
std::unique_ptr<profiler::GpuProfiler> profileGpu(const engine::Experiment& experiment, RunRecording& recording,
                                                  const base::MonotonicClock& clock);

/// Ends the profiler. Its notes go to metrics["profiler_notes"], lost records and the table of kernels ("gpu.kernels":
/// JSON rows with name, launches, total_ns, grid, block, registers, shared_bytes, local_bytes) to the recording.
void finishGpuProfile(profiler::GpuProfiler& profiler, RunRecording& recording, nlohmann::json& metrics);

} // namespace vitrine::app

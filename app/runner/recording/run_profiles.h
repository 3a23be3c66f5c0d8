// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The profiles of bench profiling: each is a recorded run in a session file that goes when the benchmark ends, with the
// GPU's profiler before it, exactly as a run with --session has it.

#include <filesystem>
#include <memory>
#include <string>

#include "app/runner/recording/run_recording.h"
#include "base/clock.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "profiler/gpu/gpu_profiler.h"

namespace vitrine::app {

class RunProfiles final : public engine::ProfileSwitch {
public:
    /// `clock` is the run's and outlives this.
    RunProfiles(const engine::Experiment& experiment, const base::MonotonicClock& clock);
    ~RunProfiles() override;
    RunProfiles(const RunProfiles&) = delete; // owns a file
    RunProfiles& operator=(const RunProfiles&) = delete;

    base::TraceSink& begin(const std::string& level) override;
    void settle() override;
    std::uint64_t end() override;

private:
    engine::Experiment experiment_;
    const base::MonotonicClock& clock_;
    std::filesystem::path folder_;
    std::unique_ptr<RunRecording> recording_;
    std::unique_ptr<profiler::GpuProfiler> gpu_;
};

} // namespace vitrine::app

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/run_profiles.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/runner/recording/gpu_profiling.h"
#include "base/json_values.h"
#include "engine/workload/common/result_text.h"
#include "sessions/session_file.h"

namespace vitrine::app {

RunProfiles::RunProfiles(const engine::Experiment& experiment, const base::MonotonicClock& clock)
    : experiment_(experiment), clock_(clock),
      folder_(std::filesystem::temp_directory_path() / fmt::format("vitrine-profiling-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
}

RunProfiles::~RunProfiles() {
    gpu_.reset();
    recording_.reset();
    std::error_code ignored; // what is left lies in the system's folder for such files
    std::filesystem::remove_all(folder_, ignored);
}

base::TraceSink& RunProfiles::begin(const std::string& level) {
    experiment_.set("profile", level);
    sessions::RunInfo info;
    info.name = "profiling " + level;
    info.workload = engine::runWorkload(experiment_);
    info.specJson = base::compactText(experiment_.toJson());
    recording_ = std::make_unique<RunRecording>(
        sessions::SessionFile::open((folder_ / "rounds.vitrine").string(), sessions::OpenMode::CreateOrOpen), info);
    gpu_ = profileGpu(experiment_, *recording_, clock_);
    return gpu_ != nullptr ? static_cast<base::TraceSink&>(*gpu_) : recording_->trace();
}

void RunProfiles::settle() {
    if (gpu_ != nullptr) {
        gpu_->waitUntilReady();
    }
}

std::uint64_t RunProfiles::end() {
    std::uint64_t lost = 0;
    nlohmann::json metrics = nlohmann::json::object();
    if (gpu_ != nullptr) {
        finishGpuProfile(*gpu_, *recording_, metrics);
        lost = gpu_->lostRecords();
        gpu_.reset();
    }
    recording_->finish(sessions::RunStatus::Done, metrics.dump(), "");
    recording_.reset();
    return lost;
}

} // namespace vitrine::app

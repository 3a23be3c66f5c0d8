// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a run ran on: kept with it, so that two runs can be compared years later.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace vitrine::engine {
class Experiment;
}

namespace vitrine::app {

/// "0.1.0"
std::string_view programVersion();

/// The commit that the program was built from, with "-dirty" where files were changed; "unknown" outside git.
std::string_view programCommit();

/// {"program", "commit", "host", "os", "cpu", "cores", "simd", "memory_bytes"} of this machine.
nlohmann::json machineEnvironment();

/// The backend that an experiment runs on: what "auto" stands for on this machine, "meta" for a plan.
std::string_view chosenBackend(const engine::Experiment& experiment);

/// The machine and what an experiment chose: "backend" ("cpu", "cuda", "meta"), "device" (traits), "time_base"
/// ("monotonic" or "virtual"), "command_line" (the first 2,000 characters), "working_directory" (from which relative
/// names of files count), "model_hash" (see model_fingerprint.h; of models with files), and of a run on a GPU, where
/// the driver says it, "driver_version", "cuda_version" (of the driver), "sm_clock_max_hz" and "power_limit_watts".
/// Throws what reading a device profile throws.
nlohmann::json runEnvironment(const engine::Experiment& experiment);

/// Adds "sm_clock_hz" to the metrics of a run on a GPU that has just ended: the clock that the work ran at. Nothing
/// where the driver does not say it.
void addClockOfWork(const engine::Experiment& experiment, nlohmann::json& metrics);

} // namespace vitrine::app

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

/// {"program", "host", "os", "cpu", "cores", "simd", "memory_bytes"} of this machine.
nlohmann::json machineEnvironment();

/// The backend that an experiment runs on: what "auto" stands for on this machine, "meta" for a plan.
std::string_view chosenBackend(const engine::Experiment& experiment);

/// The machine and what an experiment chose: "backend" ("cpu", "cuda", "meta"), "device" (traits), "time_base"
/// ("monotonic" or "virtual"). Throws what reading a device profile throws.
nlohmann::json runEnvironment(const engine::Experiment& experiment);

} // namespace vitrine::app

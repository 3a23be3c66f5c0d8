// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What this machine offers and what is off: `vitrine doctor` and the GUI's machine page.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace vitrine::app {

/// {"version", "machine": {...}, "backends": [{"name", "available", "reason"}], "device": {...}, "gpus": [...],
///  "libraries": [{"name", "found", "path", "version", "needed_for", "install", "error"}],
///  "profiling": [{"name", "ready", "reason"}] (where there is a GPU), "profiles": [...],
///  "synthetic": [...], "warnings": [...]}. Works with no driver and no toolkit; never throws for what is missing.
nlohmann::json machineReport();

/// One sentence for each thing of a report that is off on this machine's GPUs, with what to do; the words of doctor.
std::vector<std::string> whatIsOff(const nlohmann::json& report);
/// "not found; off: compiling GPU kernels; to have it: install the CUDA toolkit": a library of a report that is
/// missing.
std::string missingText(const nlohmann::json& library);

} // namespace vitrine::app

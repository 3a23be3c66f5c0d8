// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Names of runs and results as text for people: sizes in binary units, rates in SI units, tables with aligned columns.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// A table as text with aligned columns. The first row is the head. Columns of numbers are aligned at the right.
std::string tableText(const std::vector<std::vector<std::string>>& rows);

/// What `vitrine` prints as the result without --json. Empty when the streamed text was the result. `metrics` are those
/// of runExperiment().
std::string resultText(const Experiment& experiment, const nlohmann::json& metrics);

/// The workload as sessions store it: "generate", "plan generate".
std::string runWorkload(const Experiment& experiment);
/// The last part of the model's name or folder, "gpt-oss-20b". Empty without a model.
std::string modelName(const Experiment& experiment);
/// The name that lists show until the user renames the run: "generate gpt-oss-20b", "plan load mistral-7b", "attention
/// causal", "static, 16 slots, gpt-oss-20b".
std::string runName(const Experiment& experiment);

} // namespace vitrine::engine

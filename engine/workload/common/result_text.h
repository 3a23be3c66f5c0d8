// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs and results as people read them: sizes in binary units, rates in SI, tables in columns.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// Rows as columns that line up; the first row is the head. Columns of numbers line up at the right.
std::string tableText(const std::vector<std::vector<std::string>>& rows);

/// One value of a result: *_bytes as a size, *_seconds as a time, others as they are.
std::string metricText(const std::string& key, const nlohmann::json& value);

/// The same of a value within a result, "ttft.p95": what it is can follow from its parents as well.
std::string fieldText(const std::string& path, const nlohmann::json& value);

/// What `vitrine` prints of a result without --json; empty where the streamed text was the result. `metrics`: of
/// runExperiment.
std::string resultText(const Experiment& experiment, const nlohmann::json& metrics);

/// "generate", "plan generate": what sessions keep of the workload.
std::string runWorkload(const Experiment& experiment);
/// "gpt-oss-20b": the last part of the model's name or folder; empty without a model.
std::string modelName(const Experiment& experiment);
/// "generate gpt-oss-20b", "plan load mistral-7b", "attention causal", "static, 16 slots, gpt-oss-20b": what lists show
/// until the user renames the run.
std::string runName(const Experiment& experiment);

} // namespace vitrine::engine

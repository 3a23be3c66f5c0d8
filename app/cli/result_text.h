// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Results as people read them: sizes in binary units, rates in SI, tables in columns.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace vitrine::app {

/// Rows as columns that line up; the first row is the head. Columns of numbers line up at the right.
std::string tableText(const std::vector<std::vector<std::string>>& rows);

/// One value of a result: *_bytes as a size, *_seconds as a time, others as they are.
std::string valueText(const std::string& key, const nlohmann::json& value);

/// The same of a value within a result, "ttft.p95": what it is can follow from its parents as well.
std::string fieldText(const std::string& path, const nlohmann::json& value);

/// The result of a run without --json; empty where the streamed text was the result.
std::string resultText(const nlohmann::json& experiment, const nlohmann::json& metrics);

/// What `vitrine doctor` prints.
std::string doctorText(const nlohmann::json& report);

} // namespace vitrine::app

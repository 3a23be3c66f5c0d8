// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the named benchmarks share: the rows that they report, and the requests that they time.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/common/run_setup.h"
#include "engine/workload/roofline/measured_ceilings.h"

namespace vitrine::engine {

/// A row {name, value, unit, ceiling, ratio}. `ceiling` 0 means that the row is a ceiling itself.
nlohmann::json benchRow(const std::string& name, double value, const std::string& unit, double ceiling = 0);
nlohmann::json ceilingRow(const std::string& name, const Ceiling& ceiling);

/// The numbers of an option that is a list such as "1,4,16". Empty when the option is not set.
std::vector<std::int64_t> numbersOption(const Run& run, const char* key);
/// `batch` requests with different prompts of `prompt` tokens each.
std::vector<GenerateRequest> someRequests(const ModelConfig& config, std::int64_t batch, std::int64_t prompt,
                                          std::int64_t newTokens);

/// The benchmarks. Each fills run.metrics["rows"].
void benchCpuDecode(const Run& run);
void benchGptOss(const Run& run);
void benchBatch(const Run& run);
void benchLoad(const Run& run);
void benchProfiling(const Run& run);
void benchAttention(const Run& run);
void benchPack(const Run& run);
void benchCeiling(const Run& run);

} // namespace vitrine::engine

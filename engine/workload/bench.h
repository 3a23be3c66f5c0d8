// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the benchmarks share: the rows of their results, and the ceilings (highest rates of the machine) that results
// are compared with.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/run_setup.h"

namespace vitrine::engine {

/// A highest rate of the device, measured in this run on random data. On Meta it is the rate in the device profile.
struct Ceiling {
    double rate = 0;  ///< bytes/s or FLOP/s; median of several measurements
    std::string what; ///< how the rate was measured
};
/// Bytes per second that a copy on the device reads and writes. On the CPU: bytes per second that all threads read.
Ceiling measureCopy(kernels::Context& context, std::uint64_t seed);
/// FLOP/s of one dense product: BF16 of 8192 x 8192 x 8192 by cuBLASLt; float32 of 1024 x 1024 x 1024 on the CPU.
Ceiling measureMatmul(kernels::Context& context, std::uint64_t seed);

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
void benchCeiling(const Run& run);

} // namespace vitrine::engine

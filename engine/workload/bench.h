// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the named benchmarks share: rows, and the ceilings of the machine that they are measured against.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/run_setup.h"

namespace vitrine::engine {

/// What the device can do, measured in this run on random data; on Meta what its profile says.
struct Ceiling {
    double rate = 0;  ///< bytes/s or FLOP/s; medians
    std::string what; ///< how it was measured
};
/// Bytes read and written per second by a copy on the device; on the CPU, bytes read by all threads.
Ceiling measureCopy(kernels::Context& context, std::uint64_t seed);
/// FLOP/s of one dense product: BF16 of 8192 x 8192 x 8192 by cuBLASLt; float32 of 1024 x 1024 x 1024 on the CPU.
Ceiling measureMatmul(kernels::Context& context, std::uint64_t seed);

/// {name, value, unit, ceiling, ratio}. A row whose `ceiling` is 0 is a ceiling itself.
nlohmann::json benchRow(const std::string& name, double value, const std::string& unit, double ceiling = 0);
nlohmann::json ceilingRow(const std::string& name, const Ceiling& ceiling);

/// Numbers of a list option as 1,4,16; none: empty.
std::vector<std::int64_t> numbersOption(const Run& run, const char* key);
/// `batch` prompts of `prompt` tokens, all different.
std::vector<GenerateRequest> someRequests(const ModelConfig& config, std::int64_t batch, std::int64_t prompt,
                                          std::int64_t newTokens);

/// The benchmarks; each fills run.metrics["rows"].
void benchCpuDecode(const Run& run);
void benchGptOss(const Run& run);
void benchBatch(const Run& run);
void benchLoad(const Run& run);
void benchProfiling(const Run& run);
void benchAttention(const Run& run);
void benchCeiling(const Run& run);

} // namespace vitrine::engine

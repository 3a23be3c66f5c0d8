// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What `vitrine attention` does: runs attention with programs on tensors from a file or random ones, writes what it gives,
// and times it.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/runner/mod_request.h"
#include "kernels/context.h"

namespace vitrine::app {

/// Sizes of random tensors.
struct RandomAttention {
    std::int64_t batch = 1, heads = 1, kvHeads = 1, length = 1, headDim = 64;
};
/// "B,H,HKV,S,D"; throws BadInput that names --random.
RandomAttention parseRandomAttention(const std::string& text);

struct AttentionQuestion {
    ModRequest mods;         ///< files and defines; the sizes come from the tensors
    std::string score, mask; ///< expressions; empty: none
    std::string tensorsFile; ///< q, k, v, grad_out, sinks and captured tensors; with `random` only the captured ones
    std::optional<RandomAttention> random;
    bool sinks = true; ///< take the file's `sinks`, if it has them
    bool backward = false;
    std::string output; ///< safetensors to write; empty: none
    kernels::Backend backend = kernels::Backend::Cpu;
    kernels::DeviceTraits traits;                ///< of Meta
    kernels::DType dtype = kernels::DType::None; ///< None: the file's, or the backend's default for random tensors
    std::int64_t blockSize = 128;
    std::optional<double> scale; ///< default 1 / sqrt(headDim)
    std::uint64_t seed = 0;
    int threads = 0;
    int repeat = 3;
};

/// {forward_ms, backward_ms (null without backward), forward_tflops, backward_tflops, ...}: medians; FLOPs are those of the
/// non-empty blocks. On Meta the times are estimates and nothing is written.
nlohmann::json attentionReport(const AttentionQuestion& question, const base::StopToken& stop);

} // namespace vitrine::app

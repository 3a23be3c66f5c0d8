// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The upper limit of the speed of decoding: a step cannot be faster than the device reads the bytes that the step
// needs. Benchmarks and the metrics of runs use it.

#include <cstdint>
#include <optional>

#include "engine/generation/generator.h"
#include "engine/model/model.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The bytes that one decode step reads, grouped by the ops that read them. Each weight is read once for all sequences.
struct DecodeBytes {
    double experts = 0; ///< experts that a token of the step was routed to
    double shared = 0;  ///< attention, norms, routers, dense MLPs, a row of the embedding for each sequence
    double head = 0;
    double kv = 0;

    double total() const { return experts + shared + head + kv; }
};

/// `expertsHit`: the number of different experts in a layer, summed over the layers. `kvBytes`: bytes of the keys and
/// values of all sequences.
DecodeBytes decodeBytes(const Model& model, double sequences, double expertsHit, double kvBytes);

/// The mean number of different experts that `tokens` tokens are routed to. Each token has `each` of the `count`
/// experts, and all experts are equally likely.
double expectedExperts(std::int64_t count, std::int64_t each, double tokens);

/// FLOPs of a step with `tokens` new tokens of one sequence, which has `before` tokens in the cache. The step computes
/// the logits of one row.
double stepFlops(const ModelConfig& config, std::int64_t before, std::int64_t tokens);

/// The decode steps of a finished run of "generate".
struct DecodeRoofline {
    DecodeBytes step;         ///< bytes of the mean step
    double sequences = 0;     ///< of the mean step
    double expertsHit = 0;    ///< of a layer
    double stepSeconds = 0;   ///< measured
    bool mixture = false;     ///< the model has experts
    bool counted = false;     ///< expertsHit was counted, not estimated
    double contextTokens = 0; ///< mean over steps and sequences
};

/// The number of experts is what options.expertUse has counted, for the number of sequences of the mean step. Without
/// counts it is the mean number for equally likely experts. Empty when nothing was decoded.
std::optional<DecodeRoofline> decodeRoofline(const Model& model, const GenerateReport& report,
                                             const GenerateOptions& options);

/// metrics["roofline"]: bandwidth (bytes/s) and bandwidth_source, parts {experts, attention (layers of models without
/// experts), head, kv_cache: bytes per token}, bytes_per_token, floor_seconds_per_token, seconds_per_token, ratio of
/// the two, sequences, context_tokens, experts_hit and experts_counted. On CUDA the bandwidth is measured once in a
/// process, in the memory that is free on the device; so call this after the model is destroyed. A device
/// with a shipped profile has the bandwidth of that, so that all texts of one machine name one. On the CPU the
/// bandwidth is measured when the run decoded for a second or longer.
void addRooflineMetrics(const Run& run, kernels::Context& context, const DecodeRoofline& roofline);

} // namespace vitrine::engine

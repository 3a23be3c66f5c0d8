// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What decoding cannot be faster than: the bytes that a step must read, by the op that reads them, at the rate at which
// the device reads memory. Shared by the benchmarks and by the metrics of runs.

#include <cstdint>
#include <optional>

#include "engine/generation/generator.h"
#include "engine/model/model.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Bytes of one decode step; each weight is read once, however many sequences share it.
struct DecodeBytes {
    double experts = 0; ///< those that are hit
    double shared = 0;  ///< attention, norms, routers, dense MLPs, a row of the embedding for each sequence
    double head = 0;
    double kv = 0;

    double total() const { return experts + shared + head + kv; }
};

/// `expertsHit`: different ones of a layer, summed over layers. `kvBytes`: keys and values of all sequences.
DecodeBytes decodeBytes(const Model& model, double sequences, double expertsHit, double kvBytes);

/// Different experts of `count` that `tokens` tokens with `each` of them hit on average, when all are equally likely.
double expectedExperts(std::int64_t count, std::int64_t each, double tokens);

/// FLOPs of `tokens` new tokens of one sequence behind `before` others, with logits of one row.
double stepFlops(const ModelConfig& config, std::int64_t before, std::int64_t tokens);

/// The decode steps of a finished generate run.
struct DecodeRoofline {
    DecodeBytes step;         ///< of the mean step
    double sequences = 0;     ///< of the mean step
    double expertsHit = 0;    ///< of a layer
    double stepSeconds = 0;   ///< measured
    bool mixture = false;     ///< the model has experts
    bool counted = false;     ///< expertsHit was
    double contextTokens = 0; ///< mean over steps and sequences
};

/// Experts are those that options.expertUse has counted, for as many sequences as the mean step had; where nothing was
/// counted, as many as equally likely ones hit. Empty when nothing was decoded.
std::optional<DecodeRoofline> decodeRoofline(const Model& model, const GenerateReport& report,
                                             const GenerateOptions& options);

/// metrics["roofline"]: bandwidth (bytes/s) and bandwidth_source, parts {experts, attention (layers of models without
/// experts), head, kv_cache: bytes per token}, bytes_per_token, floor_seconds_per_token, seconds_per_token, ratio of
/// the two, sequences, context_tokens, experts_hit and experts_counted. On CUDA the bandwidth is measured once in a
/// process, with what memory the device has left: call it when the model is gone; a device profile that tells more is
/// believed. On the CPU it is measured when the run decoded for a second or more.
void addRooflineMetrics(const Run& run, kernels::Context& context, const DecodeRoofline& roofline);

} // namespace vitrine::engine

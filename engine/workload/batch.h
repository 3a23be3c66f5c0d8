// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a batch, its plan and its benchmark share: a trace turned into requests, served, and reported.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/generation/batch_replay.h"
#include "engine/workload/request_trace.h"
#include "engine/workload/run_setup.h"

namespace vitrine::engine {

/// The experiment's trace: its file, or one made by its recipe; written to save_trace where that is asked for.
std::vector<TraceRow> traceOf(const Run& run);

/// Requests of a trace as an engine takes them.
struct BatchWork {
    std::vector<ArrivingRequest> requests;
    std::shared_ptr<const Tokenizer> tokenizer; ///< null where every prompt is tokens
    ChatFormatKind chatFormat = ChatFormatKind::ChatMl;
    std::int64_t longestPrompt = 1, longestSequence = 1;
};
/// `meta`: no end token counts. Throws BadInput that names the row.
BatchWork batchWork(const Run& run, const ModelSource& source, const std::vector<TraceRow>& rows, bool meta);

BatchOptions batchOptions(const Run& run, const ModelOptions& model, const BatchWork& work, const ModelConfig& config);

/// Percentiles of seconds: {"p50", "p90", "p99", "mean"}, the smallest value that at least so many are not above; null
/// without values.
nlohmann::json percentilesJson(std::vector<double> seconds);

/// Fills in what was done until now: tokens_per_second, generated_tokens, steps, decode_steps, slot_utilization, ttft, tpot,
/// e2e, and what the cache and the scheduler did.
void addBatchMetrics(nlohmann::json& metrics, const BatchEngine& engine, std::int32_t slots);

/// Loads the model, serves the trace and fills in run.metrics but for memory and kernels. Throws what went wrong; metrics
/// then say how far it came.
void serveBatch(const Run& run, kernels::Context& context, const ModelSource& source,
                const std::vector<TraceRow>& rows);

} // namespace vitrine::engine

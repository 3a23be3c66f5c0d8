// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a batch, its plan and its benchmark share: a trace turned into requests, served, and reported.

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/generation/batch_replay.h"
#include "engine/workload/batch/request_trace.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The experiment's trace: its file, or one made by its recipe; written to save_trace where that is asked for.
std::vector<TraceRow> traceOf(const Run& run);

/// Requests of a trace as an engine takes them.
struct BatchWork {
    std::vector<ArrivingRequest> requests;
    std::shared_ptr<const Tokenizer> tokenizer; ///< null where every prompt is tokens
    ChatFormatKind chatFormat = ChatFormatKind::ChatMl;
    std::int64_t longestPrompt = 1, longestSequence = 1;
    std::int64_t mostForbidden = 0;
};
/// `meta`: no end token counts. Throws BadInput that names the row.
BatchWork batchWork(const Run& run, const ModelSource& source, const std::vector<TraceRow>& rows, bool meta);

BatchOptions batchOptions(const Run& run, const ModelOptions& model, const BatchWork& work, const ModelConfig& config);

/// Percentiles of seconds: {"p50", "p90", "p95", "p99", "mean"}, the smallest value that at least so many are not
/// above; null without values.
nlohmann::json percentilesJson(std::vector<double> seconds);

/// Numbers and times of requests that have ended. Of many requests the times are those of the last kMostTimes.
class BatchTally {
public:
    static constexpr std::size_t kMostTimes = std::size_t{1} << 20;

    /// `from`: when what is counted began; requests that arrived before have their latencies, but `seconds` counts from
    /// here.
    explicit BatchTally(base::TimeNs from = 0) : begin_(from), end_(from), from_(from) {}

    void add(const BatchResult& result);
    /// requests, finished_requests, refused_requests, cancelled_requests, generated_tokens (`generated`), seconds,
    /// tokens_per_second, ttft, tpot, e2e. `until`: when the last of `generated` came, where that is later than every
    /// end.
    void addTo(nlohmann::json& metrics, std::int64_t generated, base::TimeNs until = 0) const;

    std::int64_t requests() const { return requests_; }

private:
    enum class Time : std::uint8_t { First, PerToken, Whole };
    struct Times {
        std::vector<double> values;
        std::size_t next = 0; ///< to be written over
    };
    void note(Time time, double seconds);

    std::int64_t requests_ = 0, finished_ = 0, refused_ = 0, cancelled_ = 0, failed_ = 0;
    std::array<Times, 3> times_;
    base::TimeNs begin_, end_;
    base::TimeNs from_;
    bool any_ = false;
};

/// Fills in what was done until now: what `tally` says, steps, decode_steps, slot_utilization, and what the cache and
/// the scheduler did.
void addBatchMetrics(nlohmann::json& metrics, const BatchEngine& engine, const BatchTally& tally);
/// The same of an engine that keeps all its results.
void addBatchMetrics(nlohmann::json& metrics, const BatchEngine& engine);

/// Passes tokens on, with live values a few times a second.
class BatchForwarder {
public:
    BatchForwarder(const WorkloadSinks& sinks, const kernels::Context& context, const BatchEngine& engine);
    void operator()(const GeneratedToken& token);

private:
    const WorkloadSinks& sinks_;
    const kernels::Context& context_;
    const BatchEngine& engine_;
    base::TimeNs start_;
    base::TimeNs last_;
};

/// Loads the model, serves the trace and fills in run.metrics but for memory and kernels. Throws what went wrong;
/// metrics then say how far it came.
void serveBatch(const Run& run, kernels::Context& context, const ModelSource& source,
                const std::vector<TraceRow>& rows);

/// The plan of batch. Fills run.metrics; cancelled, it leaves what it knew by then, without "fits".
void planBatch(const Run& run);

} // namespace vitrine::engine

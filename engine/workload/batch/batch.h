// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the workload "batch", its plan and its benchmark share. They read or make a request trace, turn it into
// requests, serve these and report metrics.

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/generation/batch_replay.h"
#include "engine/workload/batch/request_trace.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The request trace of the experiment: read from its file, or made from its recipe. Also writes it to the file
/// save_trace when that option is set.
std::vector<TraceRow> traceOf(const Run& run);

/// The requests of a request trace, ready for a BatchEngine.
struct BatchWork {
    std::vector<ArrivingRequest> requests;
    std::shared_ptr<const Tokenizer> tokenizer; ///< null when every prompt is given as token ids
    AnswerForm answerForm = AnswerForm::Plain;
    std::int64_t longestPrompt = 1, longestSequence = 1;
    std::int64_t mostForbidden = 0;
};
/// `meta`: end tokens do not end a request. Throws BadInput, which names the line of the trace.
BatchWork batchWork(const Run& run, const ModelSource& source, const std::vector<TraceRow>& rows, bool meta);

BatchOptions batchOptions(const Run& run, const ModelOptions& model, const BatchWork& work, const ModelConfig& config);

/// Percentiles of seconds as {"p50", "p90", "p95", "p99", "mean"}. p90 is the smallest value that at least 90 % of the
/// values do not exceed. Null without values.
nlohmann::json percentilesJson(std::vector<double> seconds);

/// Counts requests that have ended and collects their times. It keeps the times of the last kMostTimes requests.
class BatchTally {
public:
    static constexpr std::size_t kMostTimes = std::size_t{1} << 20;

    /// `from` is the time at which counting begins. A request that arrived earlier has its full latency, but the metric
    /// "seconds" counts from `from`.
    explicit BatchTally(base::TimeNs from = 0) : begin_(from), end_(from), from_(from) {}

    void add(const BatchResult& result);
    /// Adds requests, finished_requests, refused_requests, cancelled_requests, finish_reasons, generated_tokens
    /// (the argument `generated`), seconds, tokens_per_second, ttft, tpot and e2e to the metrics. `until` is the time
    /// of the last generated token, when that is later than the end of every request.
    void addTo(nlohmann::json& metrics, std::int64_t generated, base::TimeNs until = 0) const;

    std::int64_t requests() const { return requests_; }

private:
    enum class Time : std::uint8_t { First, PerToken, Whole };
    struct Times {
        std::vector<double> values;
        std::size_t next = 0; ///< index of the value that the next one replaces
    };
    void note(Time time, double seconds);

    FinishCounts endings_{};
    std::int64_t requests_ = 0, finished_ = 0, refused_ = 0, cancelled_ = 0, failed_ = 0;
    std::array<Times, 3> times_;
    base::TimeNs begin_, end_;
    base::TimeNs from_;
    bool any_ = false;
};

/// Adds the metrics of what was done until now: those of `tally`, steps, decode_steps, slot_utilization, and those of
/// the cache and the scheduler.
void addBatchMetrics(nlohmann::json& metrics, const BatchEngine& engine, const BatchTally& tally);
/// The same for an engine that keeps the results of all its requests.
void addBatchMetrics(nlohmann::json& metrics, const BatchEngine& engine);

/// Passes each token to the sinks, and live values a few times a second.
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

/// Loads the model, serves the trace and fills run.metrics, except for the metrics of memory and kernels. When it
/// throws, run.metrics holds what was done until then.
void serveBatch(const Run& run, kernels::Context& context, const ModelSource& source,
                const std::vector<TraceRow>& rows);

/// Plans the workload "batch" and fills run.metrics. A cancelled plan leaves the metrics that it had by then, without
/// "fits".
void planBatch(const Run& run);

} // namespace vitrine::engine

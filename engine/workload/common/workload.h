// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs one experiment on one context and returns its metrics as JSON.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/stop.h"
#include "base/trace.h"
#include "kernels/cuda/kept_state.h"

namespace vitrine::engine {

class Experiment;
class RequestFeed;

/// One token of an answer while it is streamed. `text` is the text that can be shown because this token is known; it
/// may be empty. `channel` is "final" except for harmony models.
struct StreamedToken {
    std::int32_t request = 0;
    std::int32_t index = 0; ///< among the new tokens of its request, from 0
    std::int32_t id = 0;
    std::string text;
    std::string channel;
    float logprob = 0;
    /// Ids and logprobs of the best alternatives, when they were asked for.
    std::vector<std::pair<std::int32_t, float>> top;
    std::vector<std::string> topTexts; ///< the text of each token in `top`; empty without a tokenizer
    base::TimeNs time = 0;             ///< since the run's start
};

/// Lets a benchmark turn profiling on and off around the work that it measures. Each profile is the same as a run of
/// its own would have.
class ProfileSwitch {
public:
    virtual ~ProfileSwitch() = default;
    /// Starts a profile; `level` is "light" or "full". Returns the sink that receives the trace until end().
    virtual base::TraceSink& begin(const std::string& level) = 0;
    /// Waits until all threads that the profile starts are at work.
    virtual void settle() = 0;
    /// Ends the profile and returns how many records were lost.
    virtual std::uint64_t end() = 0;
};

/// What a run reports to while it works. All members are called on the run's thread and must not throw. Null members
/// are skipped.
struct WorkloadSinks {
    /// Nothing is logged: it is one of many plans of a search, and whoever asked hears of the result alone.
    bool quiet = false;
    base::TraceSink* trace = nullptr;
    /// The clock of the run, when the caller measures the same run; null: the run makes its own clock. Not used on
    /// virtual time.
    const base::Clock* clock = nullptr;
    base::ProgressSink* progress = nullptr;
    /// What one run of this process keeps for the next. A run takes over weights and a CUDA context that fit, and keeps
    /// its own for the next run. A workload that starts afresh frees them first. Null: every run starts afresh.
    kernels::KeptState* kept = nullptr;
    ProfileSwitch* profiles = nullptr; ///< for bench profiling
    RequestFeed* feed = nullptr;       ///< for serve
    std::function<void(const StreamedToken&)> token;
    /// Serve only: all tokens of the request were passed to `token`.
    std::function<void(std::int32_t request)> requestEnded;
    /// Serve only. A server's recording is cut into parts when it gets large (docs/batching.md). Between two steps the
    /// run asks partIsFull() whether the recording should go on in a new part. If so, it calls nextPart() with the
    /// metrics of the part that ends. Everything that was reported before that call belongs to the part that ends.
    std::function<bool()> partIsFull;
    std::function<void(const nlohmann::json& metrics)> nextPart;
    /// Between two training steps: whether somebody wants a checkpoint now. Says it once.
    std::function<bool()> saveWanted;
    /// A live value for the status line: "tokens_per_second", "decode_tokens", "kv_bytes".
    std::function<void(std::string_view name, double value)> metric;
    /// A part of the metrics that views need while the run goes on: "kv_cache".
    std::function<void(std::string_view name, const nlohmann::json& value)> fact;
};

/// Runs `experiment` on the calling thread. A plan is priced on Meta with its device profile instead. Returns the
/// metrics, which are the fields that the command line prints. Throws the errors of base/error.h. After an error the
/// sink has the events so far, and `partial` (if not null) holds the metrics that were known by then; those of a plan
/// lack "fits".
nlohmann::json runExperiment(const Experiment& experiment, const WorkloadSinks& sinks, base::StopToken stop,
                             nlohmann::json* partial = nullptr);

/// Prices the experiment as a plan. Returns fits, peak_bytes, peak_by_category, ... Throws BadInput when the workload
/// cannot be planned.
nlohmann::json planExperiment(const Experiment& experiment, const WorkloadSinks& sinks, base::StopToken stop,
                              nlohmann::json* partial = nullptr);

} // namespace vitrine::engine

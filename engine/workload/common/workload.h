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

/// One streamed token: text is what became showable (may be empty), channel is "final" but for harmony models.
struct StreamedToken {
    std::int32_t request = 0;
    std::int32_t index = 0; ///< of the new tokens, from 0
    std::int32_t id = 0;
    std::string text;
    std::string channel;
    float logprob = 0;
    std::vector<std::pair<std::int32_t, float>> top; ///< the best alternatives when asked for
    std::vector<std::string> topTexts;               ///< of `top`, each token by itself; empty without a tokenizer
    base::TimeNs time = 0;                           ///< since the run's start
};

/// Profiles that a benchmark turns on and off around what it measures, each as a run of its own would have it.
class ProfileSwitch {
public:
    virtual ~ProfileSwitch() = default;
    /// `level` is "light" or "full". Returns where the trace goes to until end().
    virtual base::TraceSink& begin(const std::string& level) = 0;
    /// Waits until all that the profile starts on threads of its own is at work.
    virtual void settle() = 0;
    /// Returns how many records were lost.
    virtual std::uint64_t end() = 0;
};

/// Where a run reports while it works. Called on the run's thread; must not throw. Null members are skipped.
struct WorkloadSinks {
    base::TraceSink* trace = nullptr;
    /// The run's clock where others measure the same run; null: the run makes its own. Not used on virtual time.
    const base::Clock* clock = nullptr;
    base::ProgressSink* progress = nullptr;
    /// What runs of this process leave to each other: a run takes over weights and a CUDA context that fit, and leaves
    /// its own; a workload that starts afresh frees them first. Null: every run starts afresh.
    kernels::KeptState* kept = nullptr;
    ProfileSwitch* profiles = nullptr; ///< for bench profiling
    RequestFeed* feed = nullptr;       ///< for serve
    std::function<void(const StreamedToken&)> token;
    /// Serve: all tokens of the request were told.
    std::function<void(std::int32_t request)> requestEnded;
    /// Serve asks between steps whether what is kept of the run should go on in another part, and says so when it may:
    /// all that was told before belongs to the part before, whose numbers of requests it hands over (docs/batching.md).
    std::function<bool()> partIsFull;
    std::function<void(const nlohmann::json& metrics)> nextPart;
    /// A live value for the status line: "tokens_per_second", "decode_tokens", "kv_bytes".
    std::function<void(std::string_view name, double value)> metric;
    /// Something of the metrics that views need while the run goes on: "kv_cache".
    std::function<void(std::string_view name, const nlohmann::json& value)> fact;
};

/// Runs `experiment`; a plan is priced on Meta with its device profile instead. Returns the metrics: the fields that
/// the command line prints. Throws the errors of base/error.h. On Cancelled, OutOfMemory and others the events so far
/// are with the sink, and `partial` (if not null) holds the metrics known by then; of a plan without "fits".
nlohmann::json runExperiment(const Experiment& experiment, const WorkloadSinks& sinks, base::StopToken stop,
                             nlohmann::json* partial = nullptr);

/// The same of the experiment as a plan: fits, peak_bytes, peak_by_category, ... Throws BadInput where the workload
/// cannot be planned.
nlohmann::json planExperiment(const Experiment& experiment, const WorkloadSinks& sinks, base::StopToken stop,
                              nlohmann::json* partial = nullptr);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Samples answers with the model that trains, between its updates. It is a BatchEngine that comes and goes.
//
// Sleep and wake. While the model trains, the engine sleeps: the pool of pages, the arena of steps and captured graphs
// are given back to the device to the last byte, and one budget serves both roles. The next sample() wakes it, and the
// pool takes what memory is free then.
//
// Versions. Weights have a version, which weightsChanged() counts up. All that was computed with the old ones is gone
// then: prefixes that pages hold, drafts, captured graphs. An answer is sampled by one version; answers that
// go on after an update are new requests whose prompt ends with the tokens that they have, and the caller keeps the
// version of each token.
//
// Groups. Neighbouring requests with the same prompt share its pages. Where the prompt fills pages, the first request
// of a group reads it, and the others wait until its pages are known. Where experts are to be returned, the first
// request reads its whole prompt even if another group had known pages for its beginning. The others get the experts of
// shared tokens from it (prompt_experts.h); all requests of a group ask alike.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/generation/batch_engine.h"

namespace vitrine::engine {

struct RolloutCounts {
    std::int64_t tokens = 0;       ///< that were sampled
    std::int64_t sharedTokens = 0; ///< of prompts that were not computed again
    std::int64_t preemptions = 0;
    double seconds = 0; ///< on the context's clock, waking included
    SpeculationCounts speculation;
};

/// Belongs to the thread of the model's context, which outlives it.
class RolloutEngine {
public:
    /// The lengths of the options are those of the requests of each sample(). `tokenizer` may be null.
    RolloutEngine(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const BatchOptions& options);
    ~RolloutEngine();
    RolloutEngine(const RolloutEngine&) = delete; // owns a pool of pages
    RolloutEngine& operator=(const RolloutEngine&) = delete;

    /// An answer: the request by its place in what sample() got. May be moved from.
    using Ended = std::function<void(std::size_t request, GenerateResult& result)>;
    /// Answers all requests and calls `ended` for each as it ends. Throws what BatchEngine::step() throws, and
    /// BadInput where an answer fits no pool even alone; answers that have not ended are lost then, and it sleeps.
    /// Wakes the engine.
    void sample(std::vector<GenerateRequest> requests, const Ended& ended);

    /// Gives all memory back. Does nothing while it sleeps.
    void sleep();
    /// The weights are others from now on; the engine sleeps. Not to be called by `ended`.
    void weightsChanged();
    std::int64_t version() const { return version_; }
    void setVersion(std::int64_t version) { version_ = version; } ///< of a training that goes on
    /// How many requests there were: they are numbered in turn, so that the trace of a run has each number once.
    std::int64_t requests() const { return options_.scheduler.firstRequest; }
    void setRequests(std::int64_t requests) { options_.scheduler.firstRequest = static_cast<std::int32_t>(requests); }
    /// Since the last call, or the beginning. Complete when the engine sleeps.
    RolloutCounts takeCounts();

private:
    class Sampling;

    void wake();
    void giveBack();
    void expect(const std::vector<GenerateRequest>& requests);
    void answer(std::vector<GenerateRequest> requests, const Ended& ended);
    void countEngine();

    Model& model_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    BatchOptions options_;
    std::unique_ptr<BatchEngine> engine_; ///< null while it sleeps
    bool drafterSleeps_ = false;
    std::int64_t version_ = 0;
    RolloutCounts counts_;
};

} // namespace vitrine::engine

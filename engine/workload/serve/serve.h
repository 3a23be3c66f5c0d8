// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The workload "serve": requests come from outside while the run goes on. A server hands them over by a RequestFeed;
// the run's thread owns the model and the engine and is the only one that touches them. It sleeps while there is
// nothing to do.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/generation/batch_engine.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// What turns what clients send into requests. Immutable while the run serves; any thread may use it.
struct ServedModel {
    std::string name; ///< as the user wrote it
    const RequestMaker* maker = nullptr;
    std::shared_ptr<const Tokenizer> tokenizer; ///< null: prompts are token ids, and answers have no text
    /// A synthetic model without a tokenizer: a text's bytes stand for tokens, so that any client can load it.
    bool textIsBytes = false;
    std::string whyNoChat; ///< empty: messages can be given
    bool harmony = false;  ///< messages have channels
    std::int64_t vocab = 0;
    std::int64_t slots = 0;
    std::int64_t longest = 0; ///< tokens of a prompt and its answer together at most
    std::string whyNotLonger; ///< what sets it
    bool sharesPrefixes = false;
};

/// Receives the tokens of one request. Called on the run's thread; must not throw.
class RequestListener {
public:
    virtual ~RequestListener() = default;
    virtual void token(const GeneratedToken& token) = 0;
    /// The last call: the request has ended, or was refused (result.refusal says why).
    virtual void ended(const BatchResult& result) = 0;
};

struct FedRequest {
    GenerateRequest request;
    std::shared_ptr<RequestListener> listener;
    std::chrono::steady_clock::time_point received;
};

/// What happened outside since the last look.
struct FedWork {
    std::vector<FedRequest> arrived;
    /// Their clients are gone: these requests are cancelled. Unknown ones are passed over.
    std::vector<std::shared_ptr<const RequestListener>> left;
    bool over = false; ///< no more will come: the run ends with the last request
};

/// How it stands between two steps.
struct ServeStatus {
    std::int64_t running = 0, waiting = 0;
    PageCounts pages;           ///< of the KV cache's pool
    std::int64_t generated = 0; ///< tokens since the beginning
    std::int64_t requests = 0;  ///< that came since the beginning, refused ones included
    std::int64_t outOfMemorySteps = 0;
    std::int64_t stepTokens =
        0; ///< that a step may have at present: fewer than token_budget after one that did not fit
};

class RequestFeed {
public:
    virtual ~RequestFeed() = default;
    /// The model is loaded: requests may come until ended() is called. On the run's thread, as all that follows.
    virtual void ready(const ServedModel& model) = 0;
    /// What is there. `wait`: not before there is something.
    virtual FedWork take(bool wait) = 0;
    /// A few times a second while requests run, whenever some arrived or left, and when there is nothing more to do.
    virtual void status(const ServeStatus& status) = 0;
    /// The run serves no more, for the reason that `error` tells (empty: all was served). `model` is gone after this.
    virtual void ended(const std::string& error) noexcept = 0;
};

} // namespace vitrine::engine

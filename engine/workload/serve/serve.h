// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The workload "serve": requests come from outside while the run goes on. A server passes them to the run through a
// RequestFeed. The run's thread owns the model and the engine, and no other thread uses them. This thread sleeps while
// there is nothing to do.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/generation/batch_engine.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The most tokens whose logits one client may bias: memory is set aside for them.
inline constexpr std::int64_t kMostBiasedTokens = 300;
/// The most tokens by which one client may stop its answer, for the same reason.
inline constexpr std::int64_t kMostStopTokensOfClient = 128;

/// What a server needs to turn the messages of clients into requests. It does not change while the run serves. Any
/// thread may use it.
struct ServedModel {
    std::string name; ///< as the user wrote it
    const RequestMaker* maker = nullptr;
    std::shared_ptr<const Tokenizer> tokenizer; ///< null: prompts are token ids and answers have no text
    /// A synthetic model without a tokenizer takes the bytes of a text as token ids, so that any client can send
    /// requests.
    bool textIsBytes = false;
    std::string whyNoChat; ///< why clients cannot send chat messages; empty: they can
    bool harmony = false;  ///< messages have channels (the harmony format)
    std::int64_t vocab = 0;
    std::int64_t slots = 0;
    std::int64_t longest = 0; ///< the most tokens of a prompt and its answer together
    std::string whyNotLonger; ///< what sets the limit `longest`, as text
    bool sharesPrefixes = false;
};

/// Receives the tokens of one request. Its functions are called on the run's thread and must not throw.
class RequestListener {
public:
    virtual ~RequestListener() = default;
    virtual void token(const GeneratedToken& token) = 0;
    /// Called last: the request has ended or was refused (result.refusal says why).
    virtual void ended(const BatchResult& result) = 0;
};

struct FedRequest {
    GenerateRequest request;
    std::shared_ptr<RequestListener> listener;
    std::chrono::steady_clock::time_point received;
};

/// What happened outside since the last call of RequestFeed::take().
struct FedWork {
    std::vector<FedRequest> arrived;
    /// Listeners whose clients are gone. Their requests are cancelled. Unknown listeners are ignored.
    std::vector<std::shared_ptr<const RequestListener>> left;
    bool over = false; ///< no more requests will come; the run ends with the last request
};

/// The state of the run between two steps.
struct ServeStatus {
    std::int64_t running = 0, waiting = 0;
    PageCounts pages;           ///< of the KV cache's pool
    std::int64_t generated = 0; ///< tokens since the beginning
    std::int64_t requests = 0;  ///< requests that came since the beginning, refused ones included
    std::int64_t outOfMemorySteps = 0;
    /// The most tokens of a step at present; fewer than token_budget after a step that did not fit into memory.
    std::int64_t stepTokens = 0;
};

class RequestFeed {
public:
    virtual ~RequestFeed() = default;
    /// Called when the model is loaded. Requests may come until ended() is called. All functions are called on the
    /// run's thread.
    virtual void ready(const ServedModel& model) = 0;
    /// Returns what has happened since the last call. `wait`: blocks until something has happened.
    virtual FedWork take(bool wait) = 0;
    /// Called a few times a second while requests run, whenever requests arrived or left, and when there is nothing
    /// more to do.
    virtual void status(const ServeStatus& status) = 0;
    /// Called when the run serves no more. `error` is the reason; empty: all requests were served. The ServedModel of
    /// ready() is destroyed after this call.
    virtual void ended(const std::string& error) noexcept = 0;
};

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Speculative decoding. A drafter guesses the next tokens of a request cheaply. The model then checks all of them in
// one step, which reads its weights once. acceptance.h says which tokens are kept, and why the answer stays that of
// plain decoding. An engine takes the keys and values of the other tokens back out of the KV cache.
//
// Decoding reads all weights for a few tokens, so a step over five tokens takes little longer than one over a single
// token. Speculation pays where drafts are often right. It costs time where they are wrong, so draft_pace.h makes
// drafts short then, and pauses.
//
// As everywhere, a step over another number of rows may round differently in the last bits. Where the two best logits
// are that close, another token can be chosen.

#include <cstdint>
#include <span>

#include "engine/generation/active_request.h"

namespace vitrine::engine {

/// A request that wants a draft of at most `tokens` tokens.
struct DraftJob {
    ActiveRequest* request = nullptr;
    std::int64_t tokens = 0;
};

/// Guesses tokens. A drafter belongs to the thread of the model's context.
class Drafter {
public:
    Drafter() = default;
    virtual ~Drafter() = default;
    Drafter(const Drafter&) = delete; // may own a model
    Drafter& operator=(const Drafter&) = delete;

    /// Adds at most `tokens` tokens to the draft of each request, which has none before. A request may stay without a
    /// draft. Throws OutOfMemory, DeviceFault and Cancelled; requests may have drafts then.
    virtual void draft(std::span<const DraftJob> jobs) = 0;
    /// Bytes of weights that the making of one drafted token reads.
    virtual std::uint64_t bytesPerToken() const { return 0; }
    /// Frees what is kept for the request of this number, if anything is.
    virtual void forget(std::int32_t request) = 0;
    /// Frees what is kept for any request.
    virtual void forgetAll() = 0;
    /// Between uses, while other work needs the memory: gives back what it holds beside its weights, and takes it
    /// again. wake() throws OutOfMemory. Called in turn, beginning with sleep().
    virtual void sleep() {}
    virtual void wake() {}
    /// The large model found no memory for a step: forgets graphs that were captured in the arena of steps.
    virtual void dropGraphs() {}
};

/// Throws Unsupported for a model whose steps of several tokens of one sequence would give other results than steps of
/// single tokens: dynamic rotary frequencies follow the length that the sequence has after the step.
void requireSpeculation(const ModelConfig& config);

} // namespace vitrine::engine

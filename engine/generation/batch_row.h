// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a BatchEngine keeps for each request. Only its own source files include this header.

#include "engine/generation/active_request.h"
#include "engine/generation/batch_engine.h"

namespace vitrine::engine {

/// One request of a batch.
struct BatchEngine::Row {
    Row(GenerateRequest asked, std::int32_t number, std::shared_ptr<const Tokenizer> tokenizer, AnswerForm answerForm)
        : request(std::move(asked), number, out.result, std::move(tokenizer), answerForm) {}

    BatchResult out;
    ActiveRequest request;
    std::int64_t computed = 0; ///< the most tokens of it that were in the cache at any time
    bool shares = false;       ///< some tokens of its prompt were found in known pages

    bool done() const { return request.done() || !out.refusal.empty(); }
};

} // namespace vitrine::engine

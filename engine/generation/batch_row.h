// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a BatchEngine knows of a request: shared by its source files.

#include "engine/generation/active_request.h"
#include "engine/generation/batch_engine.h"

namespace vitrine::engine {

/// A request and what a batch knows of it besides.
struct BatchEngine::Row {
    Row(GenerateRequest asked, std::int32_t number, std::shared_ptr<const Tokenizer> tokenizer,
        ChatFormatKind chatFormat)
        : request(std::move(asked), number, out.result, std::move(tokenizer), chatFormat) {}

    BatchResult out;
    ActiveRequest request;
    std::int64_t computed = 0; ///< tokens that were in the cache at some time
    bool shares = false;       ///< it found tokens of its prompt in known pages

    bool done() const { return request.done() || !out.refusal.empty(); }
};

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a Generator knows of a request: shared by its source files.

#include "engine/generation/generator.h"
#include "engine/generation/request_rows.h"

namespace vitrine::engine {

/// One request on its way.
struct Generator::Row {
    GenerateRequest request;
    std::int32_t number = 0;
    int sequence = -1;                 ///< of the cache
    std::vector<std::int32_t> history; ///< prompt and new tokens
    std::optional<AnswerText> answer;
    GenerateResult* result = nullptr;

    bool done() const { return result->finish != FinishReason::None; }
};

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The prompt that the answer of a completion begins with ("echo"), with the log-probabilities of its tokens.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/serve/api_reply.h"
#include "engine/generation/generator.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::app {

struct PromptEcho {
    std::string text;
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> offsets; ///< where the text of each id begins, bytes
};

/// The text of one token alone. Without a tokenizer (null) it is its number; `index`: its place in the text.
std::string tokenText(const engine::Tokenizer* tokenizer, std::int64_t index, std::int32_t id);

/// `text`: the prompt as the client wrote it; null: it gave `ids`. Without a tokenizer the text is the ids as numbers.
PromptEcho promptEcho(const std::string* text, std::vector<std::int32_t> ids,
                      const std::shared_ptr<const engine::Tokenizer>& tokenizer);

/// One entry for each token. `scores`: of the tokens from the second on.
std::vector<TokenLogprob> promptLogprobs(const PromptEcho& echo, const engine::Tokenizer* tokenizer,
                                         std::span<const engine::PromptScore> scores);

} // namespace vitrine::app

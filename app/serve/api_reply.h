// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Answers in the form of OpenAI's API: whole objects, and the chunks of a stream (server-sent events). Beyond that form
// a choice carries "token_ids" where the model has no tokenizer, and a chat answer "reasoning_content" where the model
// thinks before it answers.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/serve/api_request.h"
#include "engine/generation/generator.h"

namespace vitrine::app {

/// What all chunks and the object of one answer share.
struct ReplyHead {
    Endpoint endpoint = Endpoint::Completions;
    std::string id; ///< "chatcmpl-..." or "cmpl-..."
    std::string model;
    std::int64_t created = 0; ///< seconds since 1970
    bool includeUsage = false;
    bool logprobs = false;
    std::int32_t topLogprobs = 0; ///< of the best tokens, beside the chosen one's
    bool tokenIds = false;        ///< the model has no tokenizer
    bool onlyPrompt = false;      ///< the answer is the prompt; what the model adds is dropped
};

struct Usage {
    std::int64_t prompt = 0;
    std::int64_t completion = 0;
    std::int64_t cached = 0; ///< tokens of the prompt that were found in pages of other requests
};

struct TokenLogprob {
    std::string text; ///< of this token alone
    float logprob = 0;
    bool known = true;       ///< false: the first token of a prompt, which follows nothing, has no log-probability
    std::int64_t offset = 0; ///< of its text in the answer, bytes
    std::vector<std::pair<std::string, float>> best; ///< texts and logprobs of the best tokens, the best first
};

/// One choice of a whole answer.
struct ReplyChoice {
    std::string text;      ///< of the channel "final"
    std::string reasoning; ///< of the channel "analysis"
    std::vector<TokenLogprob> logprobs;
    std::vector<std::int32_t> ids;
    engine::FinishReason finish = engine::FinishReason::None;
};

/// What one more token adds to a choice.
struct ReplyPiece {
    std::string text;
    std::string channel = "final";
    std::int32_t id = 0;
    TokenLogprob logprob;
};

/// "length" or "stop".
std::string_view apiFinishReason(engine::FinishReason finish);

nlohmann::json replyObject(const ReplyHead& head, const std::vector<ReplyChoice>& choices, const Usage& usage);

/// "data: ...\n\n" of the chunk before the first token (chat: the role); empty for completions.
std::string firstChunk(const ReplyHead& head, std::size_t choice);
/// Of a completion that begins with its prompt.
std::string echoChunk(const ReplyHead& head, std::size_t choice, const std::string& text,
                      const std::vector<std::int32_t>& ids);
/// Empty where the token adds nothing that can be shown.
std::string tokenChunk(const ReplyHead& head, std::size_t choice, const ReplyPiece& piece);
std::string lastChunk(const ReplyHead& head, std::size_t choice, engine::FinishReason finish);
/// The token counts, if the client asked for them, and the end of the stream.
std::string streamEnd(const ReplyHead& head, const Usage& usage);
std::string errorChunk(const ApiError& error);

/// The body of GET /v1/models, and of one model.
nlohmann::json modelObject(const std::string& name, std::int64_t created, std::int64_t longest);

/// A body's text; ends with a line end.
std::string bodyText(const nlohmann::json& body);

} // namespace vitrine::app

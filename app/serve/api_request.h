// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What clients ask for in the body of POST /v1/chat/completions and /v1/completions, read without a model: fields,
// types, ranges. request_fields.h says which fields there are. A field that is unknown, or that asks for something that
// this server cannot do, is refused with a reason.

#include <cstdint>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat/chat_message.h"
#include "engine/chat/chat_options.h"
#include "engine/workload/serve/serve.h"

namespace vitrine::app {

/// Statuses of HTTP that answers of this server have.
inline constexpr int kNoContent = 204, kBadRequest = 400, kServerError = 500, kUnavailable = 503;

/// An answer that is an error: {"error": {"message", "type", "param", "code"}}.
struct ApiError final : std::exception {
    ApiError(int httpStatus, std::string text, std::string field = {}, std::string errorCode = {});
    const char* what() const noexcept override { return message.c_str(); }

    int status; ///< of HTTP
    std::string message;
    std::string param; ///< the field of the body; empty: none
    std::string code;  ///< "model_not_found"; empty: none
};

/// Throws the ApiError "FIELD: what" with status 400.
[[noreturn]] void refuse(const std::string& field, const std::string& what);

/// {"error": ...}; the type follows from the status.
nlohmann::json errorBody(const ApiError& error);

enum class Endpoint : std::uint8_t { Completions, Chat };

/// Limits of a body.
inline constexpr std::size_t kMostBodyBytes = std::size_t{8} << 20;
inline constexpr int kDeepestBody = 32;
inline constexpr std::size_t kMostBodyValues = std::size_t{1} << 20;
/// The most answers that one request may ask for: prompts times n.
inline constexpr std::size_t kMostChoices = 128;
inline constexpr std::size_t kMostStops = 4;
inline constexpr std::size_t kMostStopTokens = static_cast<std::size_t>(engine::kMostStopTokensOfClient);
inline constexpr std::size_t kMostBiases = static_cast<std::size_t>(engine::kMostBiasedTokens);
inline constexpr int kMostTopLogprobs = 20;

struct ApiPrompt {
    bool isText = true;
    std::string text;
    std::vector<std::int32_t> tokens;
};

struct ApiRequest {
    Endpoint endpoint = Endpoint::Completions;
    std::string model;
    std::vector<ApiPrompt> prompts;            ///< completions
    std::vector<engine::ChatMessage> messages; ///< chat
    std::int32_t n = 1;                        ///< answers to each prompt
    std::optional<std::int64_t> maxTokens;     ///< 0: only the prompt, which is echoed
    std::int64_t minTokens = 0;
    std::optional<float> temperature, topP, minP, repetitionPenalty, frequencyPenalty, presencePenalty;
    std::optional<std::int32_t> topK;
    std::optional<std::uint64_t> seed;
    std::vector<std::string> stop;
    std::vector<std::int32_t> stopTokens; ///< beside those of the model
    bool echo = false;                    ///< the answer begins with the prompt
    bool stream = false;
    bool includeUsage = false;
    bool logprobs = false;                                 ///< of the chosen tokens
    std::int32_t topLogprobs = 0;                          ///< and of this many of the best
    std::vector<std::pair<std::int32_t, float>> logitBias; ///< by token id
    bool ignoreEos = false;
    engine::ChatOptions chat; ///< chat: what the template sees beside the messages; what is unset is the server's

    std::size_t choices() const {
        return (endpoint == Endpoint::Chat ? 1 : prompts.size()) * static_cast<std::size_t>(n);
    }
};

/// Throws ApiError with status 400.
ApiRequest parseApiRequest(std::string_view body, Endpoint endpoint);

} // namespace vitrine::app

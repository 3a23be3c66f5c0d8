// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/api_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/serve/chat_fields.h"
#include "app/serve/request_fields.h"
#include "base/error.h"
#include "base/strict_json.h"

namespace vitrine::app {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostTokens = 16'777'216;     ///< that a field may ask for
constexpr double kLargestExact = 9007199254740991.0; ///< up to here a double holds every whole number

/// The member, or null where it is missing or null.
const json* member(const json& body, const char* field) {
    const auto found = body.find(field);
    return found == body.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> number(const json& body, const char* field, double least, double most) {
    const json* value = member(body, field);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number()) {
        refuse(field, "must be a number");
    }
    const auto out = value->get<double>();
    if (!(out >= least && out <= most)) {
        refuse(field, fmt::format("must be from {} to {}", least, most));
    }
    return out;
}

std::optional<float> real(const json& body, const char* field, double least, double most) {
    const std::optional<double> value = number(body, field, least, most);
    return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

std::optional<std::int64_t> whole(const json& body, const char* field, std::int64_t least, std::int64_t most) {
    const std::optional<double> value =
        number(body, field, static_cast<double>(least), std::min(static_cast<double>(most), kLargestExact));
    if (value && *value != std::floor(*value)) {
        refuse(field, "must be a whole number");
    }
    return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

bool flag(const json& body, const char* field) {
    const json* value = member(body, field);
    if (value != nullptr && !value->is_boolean()) {
        refuse(field, "must be true or false");
    }
    return value != nullptr && value->get<bool>();
}

std::string text(const json& body, const char* field) {
    const json* value = member(body, field);
    if (value != nullptr && !value->is_string()) {
        refuse(field, "must be a string");
    }
    return value != nullptr ? value->get<std::string>() : std::string();
}

std::vector<std::int32_t> tokenIds(const json& list, const char* field) {
    std::vector<std::int32_t> ids;
    ids.reserve(list.size());
    for (const json& id : list) {
        if (!id.is_number_integer() || id.get<double>() < 0 ||
            id.get<double>() > double{std::numeric_limits<std::int32_t>::max()}) {
            refuse(field, "an array of token ids holds whole numbers from 0 only");
        }
        ids.push_back(id.get<std::int32_t>());
    }
    return ids;
}

ApiPrompt onePrompt(const json& value) {
    ApiPrompt prompt;
    if (value.is_string()) {
        prompt.text = value.get<std::string>();
    } else if (value.is_array()) {
        prompt.isText = false;
        prompt.tokens = tokenIds(value, "prompt");
        if (prompt.tokens.empty()) {
            refuse("prompt", "an array of token ids is empty");
        }
    } else {
        refuse("prompt", "must be a string, an array of strings, of token ids or of such arrays");
    }
    return prompt;
}

void readPrompts(const json& body, ApiRequest& request) {
    const json* value = member(body, "prompt");
    if (value == nullptr) {
        refuse("prompt", "missing; give a string, an array of strings, of token ids or of such arrays");
    }
    if (!value->is_array() || (!value->empty() && value->front().is_number())) {
        request.prompts.push_back(onePrompt(*value));
        return;
    }
    if (value->empty()) {
        refuse("prompt", "the array is empty");
    }
    if (value->size() > kMostChoices) {
        refuse("prompt", fmt::format("{} prompts are more than the {} of one request", value->size(), kMostChoices));
    }
    for (const json& entry : *value) {
        request.prompts.push_back(onePrompt(entry));
    }
}

void readStops(const json& body, ApiRequest& request) {
    const json* value = member(body, "stop");
    if (value == nullptr) {
        return;
    }
    const json list = value->is_array() ? *value : json::array({*value});
    if (list.size() > kMostStops) {
        refuse("stop", fmt::format("{} texts are more than the {} of one request", list.size(), kMostStops));
    }
    for (const json& stop : list) {
        if (!stop.is_string() || stop.get_ref<const std::string&>().empty()) {
            refuse("stop", "must be a string or an array of strings, none of them empty");
        }
        request.stop.push_back(stop.get<std::string>());
    }
}

void readStopTokens(const json& body, ApiRequest& request) {
    const json* list = member(body, "stop_token_ids");
    if (list == nullptr) {
        return;
    }
    if (!list->is_array()) {
        refuse("stop_token_ids", "must be an array of token ids");
    }
    if (list->size() > kMostStopTokens) {
        refuse("stop_token_ids",
               fmt::format("{} tokens are more than the {} of one request", list->size(), kMostStopTokens));
    }
    request.stopTokens = tokenIds(*list, "stop_token_ids");
}

/// Of a completion, whose fields of log-probabilities and streams were read.
void readEcho(const json& body, ApiRequest& request) {
    request.echo = request.endpoint == Endpoint::Completions && flag(body, "echo");
    if (request.echo && request.logprobs && request.stream) {
        refuse("echo", "not in a stream with logprobs; leave out stream or logprobs");
    }
    if (request.maxTokens == 0 && !request.echo) {
        refuse("max_tokens", "must be 1 or more; 0 is only for requests with \"echo\": true");
    }
}

void readMinTokens(const json& body, ApiRequest& request) {
    request.minTokens = whole(body, "min_tokens", 0, kMostTokens).value_or(0);
    if (request.minTokens > 0 && !request.stop.empty()) {
        refuse("min_tokens", "not together with stop; use stop_token_ids");
    }
}

/// Fields that may only have the value that changes nothing.
void refuseWhatIsNotDone(const json& body, Endpoint endpoint) {
    const auto isEmpty = [](const json& value) {
        return ((value.is_array() || value.is_object()) && value.empty()) || value == "" || value == "none" ||
               value == "auto" || value == false;
    };
    const auto onlyEmpty = [&](const char* field, const char* why) {
        if (const json* value = member(body, field); value != nullptr && !isEmpty(*value)) {
            refuse(field, why);
        }
    };
    if (endpoint == Endpoint::Completions) {
        if (const auto best = whole(body, "best_of", 1, 1'000'000);
            best && *best != whole(body, "n", 1, 1'000'000).value_or(1)) {
            refuse("best_of", "only the value of n is supported");
        }
        return;
    }
    for (const char* field : {"functions", "function_call"}) {
        onlyEmpty(field, "not supported; use tools");
    }
    onlyEmpty("audio", "not supported; this server answers with text");
}

void readResponseFormat(const json& body) {
    if (const json* format = member(body, "response_format");
        format != nullptr && !(format->is_object() && format->value("type", json()) == "text")) {
        refuse("response_format", "only {\"type\": \"text\"} is supported");
    }
}

void readLogprobs(const json& body, ApiRequest& request) {
    if (request.endpoint == Endpoint::Chat) {
        request.logprobs = flag(body, "logprobs");
        request.topLogprobs = static_cast<std::int32_t>(whole(body, "top_logprobs", 0, kMostTopLogprobs).value_or(0));
        if (request.topLogprobs > 0 && !request.logprobs) {
            refuse("top_logprobs", "only for requests with \"logprobs\": true");
        }
        return;
    }
    const json* value = member(body, "logprobs");
    if (value == nullptr || *value == false) {
        return;
    }
    request.logprobs = true;
    if (*value != true) {
        request.topLogprobs = static_cast<std::int32_t>(whole(body, "logprobs", 0, kMostTopLogprobs).value_or(0));
    }
}

/// {"TOKEN ID": BIAS, ...}
void readLogitBias(const json& body, ApiRequest& request) {
    const json* map = member(body, "logit_bias");
    if (map == nullptr) {
        return;
    }
    if (!map->is_object()) {
        refuse("logit_bias", "must be an object of token ids with a bias from -100 to 100 each");
    }
    if (map->size() > kMostBiases) {
        refuse("logit_bias", fmt::format("{} tokens are more than the {} of one request", map->size(), kMostBiases));
    }
    for (const auto& [key, value] : map->items()) {
        std::int32_t id = -1;
        const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (problem != std::errc() || end != key.data() + key.size() || id < 0) {
            refuse("logit_bias", fmt::format("\"{}\" is not a token id", key.substr(0, 40)));
        }
        const double bias = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
        if (!(bias >= -100 && bias <= 100)) {
            refuse("logit_bias", fmt::format("the bias of token {} must be a number from -100 to 100", id));
        }
        request.logitBias.emplace_back(id, static_cast<float>(bias));
    }
}

void readSampling(const json& body, ApiRequest& request) {
    request.maxTokens = whole(body, "max_tokens", 0, kMostTokens);
    if (request.endpoint == Endpoint::Chat) {
        const std::optional<std::int64_t> newer = whole(body, "max_completion_tokens", 1, kMostTokens);
        request.maxTokens = newer ? newer : request.maxTokens;
    }
    request.temperature = real(body, "temperature", 0, 2);
    if (request.temperature && *request.temperature < std::numeric_limits<float>::min()) {
        request.temperature = 0; // its inverse would be infinite
    }
    request.topP = real(body, "top_p", 0, 1);
    if (request.topP && *request.topP <= 0) {
        refuse("top_p", "0 keeps no token; give more than 0 (1 is off)");
    }
    request.minP = real(body, "min_p", 0, 1);
    request.repetitionPenalty = real(body, "repetition_penalty", 0.01, 100);
    request.frequencyPenalty = real(body, "frequency_penalty", -2, 2);
    request.presencePenalty = real(body, "presence_penalty", -2, 2);
    if (const auto topK = whole(body, "top_k", -1, kMostTokens)) {
        request.topK = static_cast<std::int32_t>(std::max<std::int64_t>(*topK, 0));
    }
    if (const json* seed = member(body, "seed")) {
        if (!seed->is_number_integer()) {
            refuse("seed", "must be a whole number");
        }
        request.seed = seed->is_number_unsigned() ? seed->get<std::uint64_t>()
                                                  : static_cast<std::uint64_t>(seed->get<std::int64_t>());
    }
    request.n = static_cast<std::int32_t>(whole(body, "n", 1, static_cast<std::int64_t>(kMostChoices)).value_or(1));
    request.ignoreEos = flag(body, "ignore_eos");
}

void readStreaming(const json& body, ApiRequest& request) {
    request.stream = flag(body, "stream");
    const json* options = member(body, "stream_options");
    if (options == nullptr) {
        return;
    }
    if (!options->is_object()) {
        refuse("stream_options", "must be an object");
    }
    if (!request.stream) {
        refuse("stream_options", "only for requests with \"stream\": true");
    }
    request.includeUsage = flag(*options, "include_usage");
}

} // namespace

ApiError::ApiError(int httpStatus, std::string text, std::string field, std::string errorCode)
    : status(httpStatus), message(std::move(text)), param(std::move(field)), code(std::move(errorCode)) {}

void refuse(const std::string& field, const std::string& what) {
    throw ApiError(kBadRequest, fmt::format("{}: {}", field, what), field);
}

json errorBody(const ApiError& error) {
    const char* type = "invalid_request_error";
    switch (error.status) {
    case 401:
        type = "authentication_error";
        break;
    case 429:
        type = "rate_limit_error";
        break;
    case 503:
        type = "service_unavailable_error";
        break;
    default:
        type = error.status >= 500 ? "server_error" : type;
    }
    return {{"error",
             {{"message", error.message},
              {"type", type},
              {"param", error.param.empty() ? json() : json(error.param)},
              {"code", error.code.empty() ? json() : json(error.code)}}}};
}

ApiRequest parseApiRequest(std::string_view body, Endpoint endpoint) {
    json value;
    try {
        value = base::parseStrictJson(body, "body", {kMostBodyBytes, kDeepestBody, kMostBodyValues});
    } catch (const base::BadInput& error) {
        throw ApiError(kBadRequest, error.message());
    }
    if (!value.is_object()) {
        throw ApiError(kBadRequest, "body: must be a JSON object");
    }
    ApiRequest request;
    request.endpoint = endpoint;
    request.model = text(value, "model");
    if (request.model.empty()) {
        refuse("model", "missing; GET /v1/models gives its name");
    }
    checkRequestFields(value, endpoint);
    if (endpoint == Endpoint::Chat) {
        readChatFields(body, value, request);
    } else {
        readPrompts(value, request);
    }
    readSampling(value, request);
    readStops(value, request);
    readStopTokens(value, request);
    readMinTokens(value, request);
    readStreaming(value, request);
    readLogprobs(value, request);
    readEcho(value, request);
    readLogitBias(value, request);
    readResponseFormat(value);
    refuseWhatIsNotDone(value, endpoint);
    if (request.choices() > kMostChoices) {
        refuse("n", fmt::format("{} answers are more than the {} of one request", request.choices(), kMostChoices));
    }
    return request;
}

} // namespace vitrine::app

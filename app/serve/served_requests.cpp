// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/served_requests.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "app/serve/chat_fields.h"
#include "base/error.h"
#include "engine/checkpoint/token_rows.h"

namespace vitrine::app {
namespace {

/// The bytes of a text as tokens of a model that has no others.
engine::GenerateRequest fromBytes(const engine::ServedModel& model, const std::string& text) {
    std::vector<std::int32_t> tokens;
    for (const char byte : text) {
        tokens.push_back(static_cast<std::int32_t>(static_cast<unsigned char>(byte) % model.vocab));
    }
    return model.maker->fromTokens(std::move(tokens));
}

std::string plainText(const std::vector<engine::ChatMessage>& messages) {
    std::string text;
    for (const engine::ChatMessage& message : messages) {
        text += fmt::format("{}: {}\n", message.role(), message.text());
    }
    return text;
}

engine::GenerateRequest fromPrompt(const engine::ServedModel& model, const ApiPrompt& prompt) {
    if (!prompt.isText) {
        engine::checkTokenIds({prompt.tokens}, model.vocab, "prompt");
        return model.maker->fromTokens(prompt.tokens);
    }
    if (model.textIsBytes) {
        return fromBytes(model, prompt.text);
    }
    if (model.tokenizer == nullptr) {
        throw ApiError(kBadRequest, "prompt: the model has no tokenizer; give token ids, as [1, 2, 3]", "prompt");
    }
    return model.maker->fromRawText(prompt.text);
}

std::vector<engine::GenerateRequest> promptsOf(const engine::ServedModel& model, const ApiRequest& request) {
    std::vector<engine::GenerateRequest> out;
    if (request.endpoint == Endpoint::Chat) {
        if (!model.whyNoChat.empty()) {
            throw ApiError(kBadRequest,
                           fmt::format("messages: {}; use /v1/completions with {}", model.whyNoChat,
                                       model.tokenizer == nullptr ? "token ids" : "a prompt"),
                           "messages");
        }
        if (model.textIsBytes) {
            out.push_back(fromBytes(model, plainText(request.messages)));
            return out;
        }
        const engine::ChatOptions options =
            chatOptionsOf(*model.maker->chatFormat(), model.maker->chatOptions(), request);
        out.push_back(model.maker->fromChat(request.messages, options));
        return out;
    }
    for (const ApiPrompt& prompt : request.prompts) {
        out.push_back(fromPrompt(model, prompt));
        // Text of a completion has no channels, whatever the model's chat format.
        out.back().answerForm = engine::AnswerForm::Plain;
    }
    return out;
}

void limit(const engine::ServedModel& model, const std::string& field, engine::GenerateRequest& request) {
    const auto prompt = static_cast<std::int64_t>(request.prompt.size());
    if (prompt == 0) {
        throw ApiError(kBadRequest, field + ": has no tokens", field);
    }
    if (prompt + 1 > model.longest) {
        throw ApiError(
            kBadRequest,
            fmt::format("{}: {} tokens leave no room for an answer; prompt and answer may have {} together, {}", field,
                        prompt, model.longest, model.whyNotLonger),
            field, "context_length_exceeded");
    }
    request.maxNewTokens = std::min(request.maxNewTokens, model.longest - prompt);
}

void applyStops(const engine::ServedModel& model, const ApiRequest& request, engine::GenerateRequest& out) {
    const auto refuse = [](const char* field, const std::string& what) {
        throw ApiError(kBadRequest, fmt::format("{}: {}", field, what), field);
    };
    out.stopTexts.insert(out.stopTexts.end(), request.stop.begin(), request.stop.end());
    if (request.ignoreEos) {
        // A token that the request names itself goes on ending it.
        std::ranges::copy_if(out.stopTokens, std::back_inserter(out.forbidden), [&](std::int32_t id) {
            return std::ranges::find(request.stopTokens, id) == request.stopTokens.end();
        });
        out.stopTokens.clear();
    }
    for (const std::int32_t id : request.stopTokens) {
        if (id >= model.vocab) {
            refuse("stop_token_ids", fmt::format("{} is not a token of the model, which has {}", id, model.vocab));
        }
        out.stopTokens.push_back(id);
    }
    out.minNewTokens = request.minTokens;
    if (out.minNewTokens > out.maxNewTokens) {
        refuse("min_tokens",
               fmt::format("{} are more than the {} that the answer may have", out.minNewTokens, out.maxNewTokens));
    }
    if (out.minNewTokens > 0 && !out.stopTexts.empty()) {
        refuse("min_tokens", "not supported here: the server was started with texts that end every answer (--stop)");
    }
}

void apply(const engine::ServedModel& model, const ApiRequest& request, engine::GenerateRequest& out) {
    engine::Sampling& sampling = out.sampling;
    sampling.temperature = request.temperature.value_or(sampling.temperature);
    sampling.topP = request.topP.value_or(sampling.topP);
    sampling.minP = request.minP.value_or(sampling.minP);
    sampling.topK = request.topK.value_or(sampling.topK);
    sampling.repetitionPenalty = request.repetitionPenalty.value_or(sampling.repetitionPenalty);
    sampling.frequencyPenalty = request.frequencyPenalty.value_or(sampling.frequencyPenalty);
    sampling.presencePenalty = request.presencePenalty.value_or(sampling.presencePenalty);
    for (const auto& [id, bias] : request.logitBias) {
        if (id >= model.vocab) {
            throw ApiError(kBadRequest,
                           fmt::format("logit_bias: {} is not a token of the model, which has {}", id, model.vocab),
                           "logit_bias");
        }
        sampling.bias.push_back({id, bias});
    }
    out.topLogprobs = request.topLogprobs;
    sampling.seed = request.seed.value_or(sampling.seed);
    // The engine makes a token at least; Exchange drops that of a request for none.
    out.maxNewTokens = std::max<std::int64_t>(request.maxTokens.value_or(out.maxNewTokens), 1);
    out.scoresPrompt = request.echo && request.logprobs;
    applyStops(model, request, out);
}

} // namespace

ServedRequests servedRequests(const engine::ServedModel& model, const ApiRequest& request) {
    const std::string field = request.endpoint == Endpoint::Chat ? "messages" : "prompt";
    if (!request.stop.empty() && model.tokenizer == nullptr) {
        throw ApiError(kBadRequest, "stop: the model has no tokenizer, so there is no text to search", "stop");
    }
    ServedRequests out;
    try {
        for (engine::GenerateRequest& prompt : promptsOf(model, request)) {
            apply(model, request, prompt);
            limit(model, field, prompt);
            out.promptTokens += static_cast<std::int64_t>(prompt.prompt.size());
            std::shared_ptr<const PromptEcho> echo;
            if (request.echo) {
                const ApiPrompt& asked = request.prompts[out.requests.size() / static_cast<std::size_t>(request.n)];
                echo = std::make_shared<PromptEcho>(
                    promptEcho(asked.isText ? &asked.text : nullptr, prompt.prompt, model.tokenizer));
            }
            for (std::int32_t i = 0; i < request.n; ++i) {
                engine::GenerateRequest& choice = out.requests.emplace_back(prompt);
                if (echo != nullptr) {
                    out.echoes.push_back(echo);
                }
                if (request.seed) {
                    choice.samplingNumber = static_cast<std::uint32_t>(i);
                }
            }
        }
    } catch (const base::BadInput& error) {
        throw ApiError(kBadRequest, error.message(), field);
    } catch (const base::Unsupported& error) {
        throw ApiError(kBadRequest, error.message(), field);
    }
    return out;
}

std::string servedName(const std::string& model) {
    std::error_code error;
    if (!std::filesystem::is_directory(model, error)) {
        return model;
    }
    const std::filesystem::path whole = std::filesystem::weakly_canonical(model, error);
    return error || whole.filename().empty() ? model : whole.filename().string();
}

} // namespace vitrine::app

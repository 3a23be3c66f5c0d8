// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/philox.h"
#include "engine/chat/chat_format.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/workload/common/chat_choice.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/option_value.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostTokensOfARun = std::int64_t{1} << 26; ///< of all prompts of a run together

/// Ids without a token (padding rows of the head, reserved numbers): they have no text and must not be chosen.
std::vector<std::int32_t> unknownIds(const Tokenizer& tokenizer, std::int64_t vocab) {
    std::vector<std::int32_t> ids;
    for (std::int64_t id = 0; id < vocab; ++id) {
        if (!tokenizer.isKnown(static_cast<std::int32_t>(id))) {
            ids.push_back(static_cast<std::int32_t>(id));
        }
    }
    return ids;
}

Sampling samplingOf(const Run& run, const ModelSource& source) {
    Sampling out;
    const float temperature = usableTemperature(run.spec.real("temperature"));
    if (temperature > 0) {
        out = fromGenerationConfig(source.generation);
    }
    out.temperature = temperature;
    out.topK = static_cast<std::int32_t>(run.spec.maybeInteger("top_k").value_or(out.topK));
    out.topP = static_cast<float>(run.spec.maybeReal("top_p").value_or(out.topP));
    if (out.topP <= 0) {
        throw base::BadInput("top_p: 0 keeps no token; give more than 0 (1 is off)");
    }
    out.minP = static_cast<float>(run.spec.maybeReal("min_p").value_or(out.minP));
    out.repetitionPenalty =
        static_cast<float>(run.spec.maybeReal("repetition_penalty").value_or(out.repetitionPenalty));
    out.frequencyPenalty = static_cast<float>(run.spec.real("frequency_penalty"));
    out.presencePenalty = static_cast<float>(run.spec.real("presence_penalty"));
    out.seed = run.seed();
    return out;
}

constexpr std::array<std::string_view, 5> kInputs = {"prompt", "chat", "tokens", "tokens_file", "prompt_length"};

} // namespace

bool hasInput(const Experiment& experiment) {
    return std::any_of(kInputs.begin(), kInputs.end(), [&](std::string_view key) { return experiment.has(key); });
}

void checkInput(const Experiment& experiment, const std::string& name, bool needed) {
    std::vector<std::string_view> given;
    for (const std::string_view key : kInputs) {
        if (experiment.has(key)) {
            given.push_back(key);
        }
    }
    if (given.size() > 1) {
        failOption(name, given[1], fmt::format("stands together with {}; give one of them", given[0]));
    }
    if (given.empty() && needed) {
        failOption(name, "prompt", fmt::format("missing; give one of {}", fmt::join(kInputs, ", ")));
    }
}

float usableTemperature(double temperature) {
    const auto value = static_cast<float>(temperature);
    return value < std::numeric_limits<float>::min() ? 0 : value;
}

std::int64_t contextLimit(const ModelConfig& config) {
    return config.rope.type == RopeType::Dynamic ? 0 : std::max<std::int64_t>(config.maxPositions, 0);
}

std::vector<std::int32_t> arbitraryTokens(std::int64_t count, std::int64_t vocab, std::uint64_t seed,
                                          std::uint32_t stream) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto random = base::philox4x32(base::philoxKey(seed, stream), i, 0);
        ids[i] = static_cast<std::int32_t>(random[0] % static_cast<std::uint64_t>(vocab));
    }
    return ids;
}

RequestMaker::RequestMaker(const Run& run, const ModelSource& source, bool meta)
    : run_(run), source_(source), meta_(meta) {
    common_.stopTokens = source.generation.eosTokens.empty() ? source.config.eosTokens : source.generation.eosTokens;
    common_.maxNewTokens = run.spec.integer("max_new_tokens");
    common_.sampling = samplingOf(run, source);
    common_.stopTexts = run.spec.texts("stop");
}

RequestMaker::~RequestMaker() = default;

void RequestMaker::prepareText() {
    if (tokenizer_ != nullptr) {
        return;
    }
    if (source_.tokenizerFile.empty()) {
        throw base::BadInput(fmt::format(
            "{}: tokenizer.json: missing; give the prompt as tokens, tokens_file or prompt_length", source_.name));
    }
    tokenizer_ = Tokenizer::load(source_.tokenizerFile);
    unknown_ = unknownIds(*tokenizer_, source_.config.vocab);
    if (!run_.spec.flag("raw")) {
        format_ = chosenChatFormat(run_, source_, tokenizer_);
        if (format_ == nullptr) {
            throw base::Unsupported(
                fmt::format("{}: chat_format: the model has no chat template and none that is built "
                            "in fits it; give one with chat_template, or the text with raw",
                            source_.name));
        }
        options_ = chosenChatOptions(run_);
        warnOfUnreadOptions(*format_, options_);
    }
}

AnswerForm RequestMaker::answerForm() const {
    return format_ != nullptr ? format_->answerForm() : AnswerForm::Plain;
}

std::int64_t RequestMaker::mostForbidden() const {
    const std::size_t stops = common_.stopTokens.size() + (format_ != nullptr ? format_->stopIds().size() : 0);
    return static_cast<std::int64_t>(unknown_.size() + stops);
}

GenerateRequest RequestMaker::fromTokens(std::vector<std::int32_t> tokens) const {
    GenerateRequest request = common_;
    request.prompt = std::move(tokens);
    limitStops(request);
    return request;
}

GenerateRequest RequestMaker::fromText(const std::string& prompt) {
    return fromMessages({ChatMessage("user", prompt)});
}

GenerateRequest RequestMaker::fromMessages(const std::vector<ChatMessage>& messages) {
    prepareText();
    return format_ != nullptr ? fromChat(messages, options_) : fromRawText(messages.front().text());
}

GenerateRequest RequestMaker::fromRawText(const std::string& text) const {
    GenerateRequest request = common_;
    request.forbidden = unknown_;
    request.prompt = tokenizer_->encode(text, true);
    limitStops(request);
    return request;
}

GenerateRequest RequestMaker::fromChat(const std::vector<ChatMessage>& messages, const ChatOptions& options) const {
    GenerateRequest request = common_;
    request.forbidden = unknown_;
    request.prompt = format_->render(messages, options).ids;
    for (const std::int32_t id : format_->stopIds()) {
        if (std::find(request.stopTokens.begin(), request.stopTokens.end(), id) == request.stopTokens.end()) {
            request.stopTokens.push_back(id);
        }
    }
    limitStops(request);
    return request;
}

void RequestMaker::limitStops(GenerateRequest& request) const {
    if (run_.spec.flag("ignore_eos")) {
        request.forbidden.insert(request.forbidden.end(), request.stopTokens.begin(), request.stopTokens.end());
    }
    if (run_.spec.flag("ignore_eos") || meta_) {
        // Meta's ids are hashes: one that looks like an end must not cut a plan short.
        request.stopTokens.clear();
    }
}

namespace {

/// A real run must stay inside what the model was made for; a plan may ask beyond it.
void limitToContext(const ModelConfig& config, GenerateRequest& request) {
    if (contextLimit(config) == 0) {
        return;
    }
    const auto prompt = static_cast<std::int64_t>(request.prompt.size());
    if (prompt + 1 > config.maxPositions) {
        throw base::BadInput(fmt::format("prompt: {} tokens leave no room in the model's context of {}; shorten it",
                                         prompt, config.maxPositions));
    }
    if (request.maxNewTokens > config.maxPositions - prompt) {
        request.maxNewTokens = config.maxPositions - prompt;
        request.cutToContext = true;
        base::logWarning(fmt::format("max_new_tokens: cut to {}, the rest of the model's context of {} tokens",
                                     request.maxNewTokens, config.maxPositions));
    }
}

/// The prompt of a generation as the experiment gives it.
GenerateRequest chatRequest(const Run& run, RequestMaker& maker) {
    if (!run.spec.has("chat")) {
        return maker.fromText(run.spec.text("prompt"));
    }
    const std::vector<ChatMessage> messages = readChatFile(run.spec.text("chat"));
    try {
        return maker.fromMessages(messages);
    } catch (const base::BadInput& error) {
        if (error.message().starts_with("messages")) {
            throw base::BadInput(run.spec.text("chat") + ": " + error.message());
        }
        throw;
    }
}

} // namespace

Prompts makePrompts(const Run& run, const ModelSource& source, bool meta) {
    Prompts prompts;
    RequestMaker maker(run, source, meta);
    std::vector<GenerateRequest> rows;
    std::vector<std::vector<std::int32_t>> ids;
    if (run.spec.has("tokens")) {
        ids.push_back(run.spec.tokens("tokens"));
    } else if (run.spec.has("tokens_file")) {
        ids = readTokenRows(run.spec.text("tokens_file"));
    } else if (run.spec.has("prompt_length")) {
        const std::int64_t count = run.spec.integer("prompt_length");
        // A plan holds as much for one token as for another.
        ids.push_back(run.spec.isPlan() ? std::vector<std::int32_t>(static_cast<std::size_t>(count))
                                        : arbitraryTokens(count, source.config.vocab, run.seed(), 0));
    } else {
        rows.push_back(chatRequest(run, maker));
    }
    checkTokenIds(ids, source.config.vocab,
                  run.spec.has("tokens_file") ? run.spec.text("tokens_file") + ": input_ids" : "tokens");
    for (std::vector<std::int32_t>& row : ids) {
        rows.push_back(maker.fromTokens(std::move(row)));
    }
    prompts.tokenizer = maker.tokenizer();
    prompts.answerForm = maker.answerForm();
    if (!run.spec.texts("stop").empty() && prompts.tokenizer == nullptr) {
        throw base::BadInput("stop: needs a prompt given as text; with tokens there is no text to search");
    }
    const std::int64_t copies = run.spec.maybeInteger("batch").value_or(1);
    std::int64_t tokens = 0;
    for (const GenerateRequest& row : rows) {
        tokens += static_cast<std::int64_t>(row.prompt.size()) * copies;
    }
    if (tokens > kMostTokensOfARun) {
        throw base::BadInput(fmt::format("batch: {} prompt tokens in all are more than the {} that a run takes", tokens,
                                         kMostTokensOfARun));
    }
    for (GenerateRequest& row : rows) {
        if (!meta) {
            limitToContext(source.config, row);
        }
        prompts.requests.insert(prompts.requests.end(), static_cast<std::size_t>(copies), row);
    }
    return prompts;
}

void checkContext(const std::vector<std::vector<std::int32_t>>& rows, const ModelConfig& config,
                  const std::string& origin) {
    for (const auto& row : rows) {
        if (contextLimit(config) > 0 && static_cast<std::int64_t>(row.size()) > config.maxPositions) {
            throw base::BadInput(fmt::format("{}: rows of {} tokens are longer than the model's context of {} "
                                             "(max_position_embeddings); shorten them",
                                             origin, row.size(), config.maxPositions));
        }
    }
}

} // namespace vitrine::engine

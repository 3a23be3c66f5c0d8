// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/chat_format.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/chat/builtin_templates.h"
#include "engine/checkpoint/small_files.h"

namespace vitrine::engine {

namespace {

constexpr std::string_view kDefault = "default";
constexpr std::string_view kMessageEnd = "<|end|>";

/// Tokens that end a text. They end an answer whether or not the template prints them.
constexpr std::array<std::string_view, 7> kTextEnds = {"<|endoftext|>",
                                                       "<|end_of_text|>",
                                                       "</s>",
                                                       "<eos>",
                                                       "<|return|>",
                                                       "<|call|>",
                                                       "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};
/// Tokens that end a turn in a format whose template prints them.
constexpr std::array<std::string_view, 9> kTurnEnds = {
    "<|im_end|>", "<|eot_id|>",     "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|eot|>", "<|END_OF_TURN_TOKEN|>",
    "<turn|>",    "<|end_of_role|>"};

std::vector<std::int32_t> stopsOf(const Tokenizer& tokenizer, const ChatTemplate& chatTemplate, AnswerForm form,
                                  const std::map<std::string, std::string>& specialTokens) {
    std::vector<std::int32_t> stops;
    const auto add = [&](std::string_view piece) {
        const auto id = tokenizer.idOf(piece);
        if (id && std::find(stops.begin(), stops.end(), *id) == stops.end()) {
            stops.push_back(*id);
        }
    };
    for (const std::string_view piece : kTurnEnds) {
        // Harmony's messages end with a token after which the answer goes on.
        const bool endsMessage = form == AnswerForm::Harmony && piece == kMessageEnd;
        if (!endsMessage && chatTemplate.text().find(piece) != std::string::npos) {
            add(piece);
        }
    }
    for (const std::string_view piece : kTextEnds) {
        if (const auto id = tokenizer.idOf(piece); id && tokenizer.isSpecial(*id)) {
            add(piece);
        }
    }
    if (const auto end = specialTokens.find("eos_token"); end != specialTokens.end()) {
        add(end->second);
    }
    return stops;
}

AnswerForm formOf(const Tokenizer& tokenizer, const ChatTemplate& chatTemplate) {
    constexpr std::array<std::string_view, 3> kHarmonyTokens = {"<|start|>", "<|channel|>", "<|message|>"};
    const bool harmony = std::all_of(kHarmonyTokens.begin(), kHarmonyTokens.end(), [&](std::string_view piece) {
        return tokenizer.idOf(piece) && chatTemplate.text().find(piece) != std::string::npos;
    });
    return harmony ? AnswerForm::Harmony : AnswerForm::Plain;
}

bool isSystem(const ChatMessage& message) {
    return message.role() == "system" || message.role() == "developer";
}

ChatTemplate namedTemplate(const ChatFiles& files, const std::string& name) {
    return {files.templates.at(name), files.places.at(name)};
}

} // namespace

ChatFormat::ChatFormat(std::shared_ptr<const Tokenizer> tokenizer, ChatTemplate chatTemplate,
                       std::map<std::string, std::string> specialTokens, std::optional<ChatTemplate> withTools)
    : tokenizer_(std::move(tokenizer)), template_(std::move(chatTemplate)), withTools_(std::move(withTools)),
      specialTokens_(std::move(specialTokens)), answerForm_(formOf(*tokenizer_, template_)),
      stopIds_(stopsOf(*tokenizer_, template_, answerForm_, specialTokens_)) {}

const ChatTemplate& ChatFormat::templateFor(const ChatOptions& options) const {
    return withTools_ && !options.tools.empty() ? *withTools_ : template_;
}

jinja::Text ChatFormat::prompt(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    if (messages.empty()) {
        throw base::BadInput("messages: there is no message");
    }
    const ChatTemplate& chosen = templateFor(options);
    if (options.system.empty()) {
        return chosen.render(messages, specialTokens_, options);
    }
    if (isSystem(messages.front())) {
        throw base::BadInput("system: the conversation has a system message of its own; give only one");
    }
    std::vector<ChatMessage> all = {ChatMessage("system", options.system)};
    all.insert(all.end(), messages.begin(), messages.end());
    return chosen.render(all, specialTokens_, options);
}

RenderedChat ChatFormat::render(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    const jinja::Text text = prompt(messages, options);
    RenderedChat out;
    out.text = text.bytes();
    out.origins = text.origins();
    out.origins.resize(out.text.size(), jinja::kTemplate);
    std::vector<std::uint8_t> written(out.text.size());
    std::transform(out.origins.begin(), out.origins.end(), written.begin(), [](jinja::Origin origin) {
        return static_cast<std::uint8_t>((origin & ~jinja::kGenerated) != jinja::kTemplate ? 1 : 0);
    });
    out.ids = tokenizer_->encodePrompt(out.text, written);
    return out;
}

std::vector<std::string> ChatFormat::unread(const ChatOptions& options) const {
    const ChatTemplate& chosen = templateFor(options);
    std::vector<std::string> out;
    const auto check = [&](bool given, const std::string& variable, const std::string& shown) {
        if (given && !chosen.names(variable)) {
            out.push_back(shown);
        }
    };
    check(!options.reasoningEffort.empty(), "reasoning_effort", "reasoning_effort");
    check(options.thinking.has_value(), "enable_thinking", "enable_thinking");
    check(!options.tools.empty(), "tools", "tools");
    if (!options.variables.empty()) {
        const auto variables = base::parseOrderedJson(options.variables, "chat_template_kwargs");
        for (const auto& [name, value] : variables.items()) {
            check(true, name, "chat_template_kwargs." + name);
        }
    }
    return out;
}

std::vector<std::int32_t> ChatFormat::answerEnds() const {
    std::vector<std::int32_t> ends = stopIds_;
    if (const auto id = tokenizer_->idOf(kMessageEnd); id && answerForm_ == AnswerForm::Harmony) {
        ends.push_back(*id);
    }
    return ends;
}

std::shared_ptr<const ChatFormat> makeChatFormat(const ChatChoice& choice, const ChatFiles& files,
                                                 std::string_view modelType,
                                                 const std::shared_ptr<const Tokenizer>& tokenizer) {
    if (!choice.templateFile.empty()) {
        if (!hasFile(choice.templateFile)) {
            throw base::BadInput(choice.templateFile + ": chat_template: does not exist");
        }
        return std::make_shared<const ChatFormat>(
            tokenizer, ChatTemplate(readSmallFile(choice.templateFile), choice.templateFile), files.specialTokens);
    }
    if (choice.format == "auto" && !files.templates.empty()) {
        const std::string standard(kDefault);
        if (!files.templates.contains(standard)) {
            std::string names;
            for (const auto& [name, text] : files.templates) {
                names += (names.empty() ? "" : ", ") + name;
            }
            throw base::BadInput(fmt::format("{}: chat_template: none of the templates is called default ({}); give "
                                             "one as a file with chat_template",
                                             files.places.begin()->second, names));
        }
        std::optional<ChatTemplate> withTools;
        if (files.templates.contains("tool_use")) {
            withTools = namedTemplate(files, "tool_use");
        }
        return std::make_shared<const ChatFormat>(tokenizer, namedTemplate(files, standard), files.specialTokens,
                                                  std::move(withTools));
    }
    const std::optional<std::string_view> name =
        choice.format == "auto" ? chooseBuiltInTemplate(modelType, *tokenizer) : std::string_view(choice.format);
    if (!name) {
        return nullptr;
    }
    return std::make_shared<const ChatFormat>(tokenizer, builtInTemplate(*name, modelType, *tokenizer),
                                              files.specialTokens);
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/chat_format.h"

#include <array>
#include <chrono>
#include <ctime>
#include <fmt/format.h>
#include <utility>

#include "base/error.h"
#include "engine/chat/chat_render.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

constexpr std::array<std::pair<ChatFormatKind, std::string_view>, 5> kNames = {{
    {ChatFormatKind::Harmony, "harmony"},
    {ChatFormatKind::ChatMl, "chatml"},
    {ChatFormatKind::Llama3, "llama3"},
    {ChatFormatKind::Mistral, "mistral"},
    {ChatFormatKind::Gemma, "gemma"},
}};

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// The literal system message that a ChatML template prints when the conversation has none.
std::string defaultSystemOf(std::string_view chatTemplate) {
    constexpr std::string_view kOpen = "<|im_start|>system";
    for (std::size_t at = chatTemplate.find(kOpen); at != std::string_view::npos;
         at = chatTemplate.find(kOpen, at + 1)) {
        std::string_view rest = chatTemplate.substr(at + kOpen.size());
        if (rest.starts_with("\\n")) {
            rest.remove_prefix(2);
        } else if (rest.starts_with("\n")) {
            rest.remove_prefix(1);
        } else {
            continue;
        }
        const std::string_view text = rest.substr(0, rest.find("<|im_end|>"));
        // A quote or brace means that the message is put together from variables.
        if (text.size() < rest.size() && !text.empty() && text.find_first_of("'\"{}\\") == std::string_view::npos) {
            return std::string(text);
        }
    }
    return {};
}

void readMistralStyle(ChatStyle& style, const Tokenizer& tokenizer, std::string_view chatTemplate) {
    const bool instIsToken = tokenizer.idOf("[INST]").has_value();
    const bool byteLevel = tokenizer.idOf("\xC4\xA0").has_value(); // "Ġ": the Tekken tokenizers
    style.spaceBeforeClose = !instIsToken;
    style.systemTokens = tokenizer.idOf("[SYSTEM_PROMPT]").has_value();
    style.systemInLastTurn = instIsToken && !style.systemTokens;
    style.spaceAfterOpen = style.spaceBeforeAnswer = !byteLevel;
    if (chatTemplate.empty()) {
        return;
    }
    style.leadingSpace = contains(chatTemplate, "' [INST] '") || contains(chatTemplate, "\" [INST] \"");
    style.spaceAfterOpen = contains(chatTemplate, "[INST] ");
    style.spaceBeforeClose = contains(chatTemplate, " [/INST]");
    style.spaceAfterEnd = contains(chatTemplate, "eos_token + ' '") || contains(chatTemplate, "eos_token + \" \"");
    constexpr std::array<std::string_view, 8> kSpacedAnswers = {
        "' ' + message['content']",   "\" \" + message[\"content\"]",
        "' ' + message.content",      "\" \" + message.content",
        "\" \" + message['content']", "' ' + message[\"content\"]",
        "' '  + message['content']",  "\" \" + content",
    };
    style.spaceBeforeAnswer = false;
    for (const std::string_view form : kSpacedAnswers) {
        style.spaceBeforeAnswer = style.spaceBeforeAnswer || contains(chatTemplate, form);
    }
    style.systemInLastTurn = contains(chatTemplate, "loop.last and system_message");
    style.systemTokens = contains(chatTemplate, "[SYSTEM_PROMPT]");
    style.trimsAnswer = contains(chatTemplate, "|trim + eos_token") || contains(chatTemplate, "| trim + eos_token");
    style.refusesSystem = !contains(chatTemplate, "system");
}

ChatStyle styleOf(ChatFormatKind kind, const Tokenizer& tokenizer, std::string_view modelType, std::string_view text) {
    ChatStyle style;
    switch (kind) {
    case ChatFormatKind::Harmony:
        break;
    case ChatFormatKind::ChatMl:
        style.thinkTags = text.empty() ? modelType.starts_with("qwen3") : contains(text, "</think>");
        style.defaultSystem = !text.empty()                    ? defaultSystemOf(text)
                              : modelType.starts_with("qwen2") ? "You are a helpful assistant."
                                                               : "";
        break;
    case ChatFormatKind::Llama3:
        style.dates = text.empty() || contains(text, "Today Date");
        style.datesFromClock = text.empty() || contains(text, "strftime_now");
        break;
    case ChatFormatKind::Mistral:
        readMistralStyle(style, tokenizer, text);
        break;
    case ChatFormatKind::Gemma:
        style.refusesSystem =
            text.empty() ? modelType == "gemma" || modelType == "gemma2" : contains(text, "System role not supported");
        break;
    }
    return style;
}

std::vector<std::string_view> stopPieces(ChatFormatKind kind) {
    switch (kind) {
    case ChatFormatKind::Harmony:
        return {"<|return|>", "<|call|>", "<|endoftext|>"};
    case ChatFormatKind::ChatMl:
        return {"<|im_end|>", "<|endoftext|>"};
    case ChatFormatKind::Llama3:
        return {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"};
    case ChatFormatKind::Mistral:
        return {"</s>"};
    case ChatFormatKind::Gemma:
        return {"<end_of_turn>", "<eos>"};
    }
    return {};
}

} // namespace

std::string_view chatFormatName(ChatFormatKind kind) {
    for (const auto& [each, name] : kNames) {
        if (each == kind) {
            return name;
        }
    }
    return {};
}

std::optional<ChatFormatKind> chatFormatByName(std::string_view name) {
    for (const auto& [kind, each] : kNames) {
        if (each == name) {
            return kind;
        }
    }
    return std::nullopt;
}

ChatFormat::ChatFormat(ChatFormatKind kind, std::shared_ptr<const Tokenizer> tokenizer, std::string_view modelType,
                       std::string_view chatTemplate)
    : kind_(kind), tokenizer_(std::move(tokenizer)), style_(styleOf(kind, *tokenizer_, modelType, chatTemplate)) {
    for (const std::string_view piece : stopPieces(kind)) {
        if (const auto id = tokenizer_->idOf(piece)) {
            stopIds_.push_back(*id);
        }
    }
    // A conversation of one word shows whether every token is there, before a user waits for an answer.
    const std::array<ChatMessage, 1> probe = {ChatMessage{"user", "a", "", "", {}}};
    render(probe, {});
}

RenderedChat ChatFormat::render(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    ChatInput input{messages, options.system, !options.system.empty(), options, style_};
    if (!messages.empty() && (messages.front().role == "system" || messages.front().role == "developer")) {
        if (input.hasSystem) {
            throw base::BadInput("system: the conversation has a system message of its own; give only one");
        }
        input.system = messages.front().content;
        input.hasSystem = true;
        input.messages = messages.subspan(1);
    }
    for (const ChatMessage& message : input.messages) {
        if (message.role == "system" || message.role == "developer") {
            throw base::BadInput("messages: only the first message can be a system message");
        }
    }
    if (input.hasSystem && style_.refusesSystem) {
        throw base::BadInput("system: this model's chat template takes no system message; put the text into the first "
                             "user message");
    }
    PromptBuilder prompt(*tokenizer_);
    switch (kind_) {
    case ChatFormatKind::Harmony:
        renderHarmony(prompt, input);
        break;
    case ChatFormatKind::ChatMl:
        renderChatMl(prompt, input);
        break;
    case ChatFormatKind::Llama3:
        renderLlama3(prompt, input);
        break;
    case ChatFormatKind::Mistral:
        renderMistral(prompt, input);
        break;
    case ChatFormatKind::Gemma:
        renderGemma(prompt, input);
        break;
    }
    return prompt.finish();
}

std::optional<ChatFormatKind> chooseChatFormat(std::string_view modelType, const Tokenizer& tokenizer,
                                               std::string_view chatTemplate) {
    const auto has = [&](std::string_view piece) { return tokenizer.idOf(piece).has_value(); };
    const auto written = [&](std::string_view piece) { return contains(chatTemplate, piece); };
    if (!chatTemplate.empty()) {
        if (written("<|start|>") && written("<|channel|>")) {
            return ChatFormatKind::Harmony;
        }
        if (written("<|im_start|>")) {
            return ChatFormatKind::ChatMl;
        }
        if (written("<|start_header_id|>")) {
            return ChatFormatKind::Llama3;
        }
        if (written("<start_of_turn>")) {
            return ChatFormatKind::Gemma;
        }
        // Llama 2 shares the brackets but puts its system message into <<SYS>> tags.
        if (written("[INST]") && !written("<<SYS>>")) {
            return ChatFormatKind::Mistral;
        }
        return std::nullopt;
    }
    if (has("<|start|>") && has("<|channel|>") && has("<|message|>") && has("<|end|>")) {
        return ChatFormatKind::Harmony;
    }
    if (has("<|im_start|>") && has("<|im_end|>")) {
        return ChatFormatKind::ChatMl;
    }
    if (has("<|start_header_id|>") && has("<|end_header_id|>") && has("<|eot_id|>")) {
        return ChatFormatKind::Llama3;
    }
    if (has("<start_of_turn>") && has("<end_of_turn>")) {
        return ChatFormatKind::Gemma;
    }
    if (has("</s>") && (has("[INST]") || modelType == "mistral" || modelType == "mixtral")) {
        return ChatFormatKind::Mistral;
    }
    return std::nullopt;
}

PromptBuilder& PromptBuilder::text(std::string_view text) {
    parts_.push_back({-1, std::string(text)});
    text_ += text;
    return *this;
}

PromptBuilder& PromptBuilder::token(std::string_view piece) {
    const auto id = tokenizer_.idOf(piece);
    if (!id) {
        throw base::Unsupported(fmt::format(
            "tokenizer: the chat format needs the token {}, which this tokenizer does not have; choose another format "
            "or give raw text",
            piece));
    }
    parts_.push_back({*id, {}});
    text_ += piece;
    return *this;
}

PromptBuilder& PromptBuilder::tokenOrText(std::string_view piece) {
    return tokenizer_.idOf(piece) ? token(piece) : text(piece);
}

PromptBuilder& PromptBuilder::optionalToken(std::string_view piece) {
    return tokenizer_.idOf(piece) ? token(piece) : *this;
}

RenderedChat PromptBuilder::finish() const {
    return {tokenizer_.encodeParts(parts_), text_};
}

CalendarDate chatDate(const ChatOptions& options) {
    CalendarDate date;
    if (options.date.empty()) {
        const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
        std::tm local{};
        localtime_r(&now, &local);
        return {local.tm_year + 1900, local.tm_mon + 1, local.tm_mday};
    }
    const std::string& text = options.date;
    bool good = text.size() == 10 && text[4] == '-' && text[7] == '-';
    for (std::size_t i = 0; good && i < text.size(); ++i) {
        good = i == 4 || i == 7 || (text[i] >= '0' && text[i] <= '9');
    }
    if (good) {
        date = {std::stoi(text.substr(0, 4)), std::stoi(text.substr(5, 2)), std::stoi(text.substr(8, 2))};
        good = std::chrono::year_month_day(std::chrono::year(date.year),
                                           std::chrono::month(static_cast<unsigned>(date.month)),
                                           std::chrono::day(static_cast<unsigned>(date.day)))
                   .ok();
    }
    if (!good) {
        throw base::BadInput(fmt::format("date: {} is not a date; write it as YYYY-MM-DD", quotedForMessage(text)));
    }
    return date;
}

std::string_view trimmed(std::string_view text) {
    std::size_t begin = 0;
    while (begin < text.size()) {
        const Utf8Step step = stepUtf8(text, begin);
        std::size_t next = begin;
        if (step.kind != Utf8Step::Kind::Whole || !isWhiteSpace(nextCodePoint(text, next))) {
            break;
        }
        begin = next;
    }
    // From the end only ASCII and whole code points are looked at; broken text stays as it is.
    std::size_t end = text.size();
    while (end > begin) {
        std::size_t start = end - 1;
        while (start > begin && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) {
            --start;
        }
        const Utf8Step step = stepUtf8(text, start);
        std::size_t next = start;
        if (step.kind != Utf8Step::Kind::Whole || start + step.bytes != end ||
            !isWhiteSpace(nextCodePoint(text, next))) {
            break;
        }
        end = start;
    }
    return text.substr(begin, end - begin);
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Chat formats: a conversation as the tokens that a model family was trained on. Each format prints what the family's
// chat template prints. Texts of messages are never read as special tokens.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat_message.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

enum class ChatFormatKind { Harmony, ChatMl, Llama3, Mistral, Gemma };

/// "harmony", "chatml", "llama3", "mistral", "gemma": the values of the option chat_format.
std::string_view chatFormatName(ChatFormatKind kind);
std::optional<ChatFormatKind> chatFormatByName(std::string_view name);

struct ChatOptions {
    std::string reasoningEffort = "medium"; ///< harmony: low, medium or high
    std::string date;                       ///< YYYY-MM-DD; empty: what the template does by itself, mostly today
    std::string system;                     ///< a system message before the conversation; empty: none
    bool addGenerationPrompt = true;        ///< ends where the assistant's answer begins
    bool enableThinking = true;             ///< Qwen 3: false puts an empty thought before the answer
};

struct RenderedChat {
    std::vector<std::int32_t> ids;
    std::string text; ///< the same with special tokens written out
};

/// What a family's template decides: read from the template's text where there is one.
struct ChatStyle {
    std::string defaultSystem;     ///< ChatML: the system message when none is given; empty: none is printed
    bool thinkTags = false;        ///< ChatML: Qwen 3's <think> tags
    bool dates = true;             ///< Llama 3.1: the system block with two dates comes always
    bool datesFromClock = true;    ///< Llama 3.1: today where no date is pinned, else the template's own day
    bool leadingSpace = false;     ///< Mistral: " [INST] " instead of "[INST] "
    bool spaceBeforeClose = true;  ///< Mistral: " [/INST]"
    bool spaceAfterOpen = true;    ///< Mistral: "[INST] "
    bool spaceBeforeAnswer = true; ///< Mistral: a space between "[/INST]" and the answer
    bool spaceAfterEnd = false;    ///< Mistral: "</s> ", the first version
    bool systemInLastTurn = false; ///< Mistral: the system text stands in the last user turn, not in the first
    bool trimsAnswer = false;      ///< Mistral: white space around an answer is cut off
    bool systemTokens = false;     ///< Mistral: the system text stands between tokens of its own
    bool refusesSystem = false;    ///< the template takes no system message (Gemma 1 and 2, the first Mistrals)
};

/// Immutable; safe to use from several threads.
class ChatFormat {
public:
    /// Throws Unsupported when the tokenizer lacks a token that the format needs.
    /// `chatTemplate` is the model's Jinja template; empty: the family's usual form.
    ChatFormat(ChatFormatKind kind, std::shared_ptr<const Tokenizer> tokenizer, std::string_view modelType,
               std::string_view chatTemplate);

    ChatFormatKind kind() const { return kind_; }
    const ChatStyle& style() const { return style_; }

    /// Throws BadInput for a conversation that the template refuses (roles that do not alternate, a system message in
    /// Gemma 2, a date that is not one) and Unsupported for tool messages where the format has none.
    RenderedChat render(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    /// Tokens that end the assistant's turn.
    const std::vector<std::int32_t>& stopIds() const { return stopIds_; }

private:
    ChatFormatKind kind_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    ChatStyle style_;
    std::vector<std::int32_t> stopIds_;
};

/// The format of a model: by its chat template, else by the tokens of its tokenizer, else by its type. Nothing when
/// none fits: such a model can only be given raw text.
std::optional<ChatFormatKind> chooseChatFormat(std::string_view modelType, const Tokenizer& tokenizer,
                                               std::string_view chatTemplate);

} // namespace vitrine::engine

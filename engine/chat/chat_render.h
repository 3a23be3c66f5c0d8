// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Inside of the chat formats: the prompt under construction and one function for each format.

#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat_format.h"

namespace vitrine::engine {

/// Collects the parts of a prompt. Texts and tokens are kept apart so that no text can become a token.
class PromptBuilder {
public:
    explicit PromptBuilder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    PromptBuilder& text(std::string_view text);
    /// A token that the format needs. Throws Unsupported when the tokenizer has no such piece.
    PromptBuilder& token(std::string_view piece);
    /// A token where the tokenizer has it, else its letters.
    PromptBuilder& tokenOrText(std::string_view piece);
    /// A token that is left out where the tokenizer does not have it.
    PromptBuilder& optionalToken(std::string_view piece);

    RenderedChat finish() const;

private:
    const Tokenizer& tokenizer_;
    std::vector<PromptPiece> parts_;
    std::string text_;
};

struct CalendarDate {
    int year = 0;
    int month = 0;
    int day = 0;
};
/// Today by the local clock, or the date that the options pin. Throws BadInput.
CalendarDate chatDate(const ChatOptions& options);

/// White space cut off at both ends, as Jinja's filter "trim" does.
std::string_view trimmed(std::string_view text);

struct ChatInput {
    std::span<const ChatMessage> messages; ///< without a leading system or developer message
    std::string_view system;               ///< its text
    bool hasSystem = false;
    const ChatOptions& options;
    const ChatStyle& style;
};

void renderHarmony(PromptBuilder& prompt, const ChatInput& input);
void renderChatMl(PromptBuilder& prompt, const ChatInput& input);
void renderLlama3(PromptBuilder& prompt, const ChatInput& input);
void renderMistral(PromptBuilder& prompt, const ChatInput& input);
void renderGemma(PromptBuilder& prompt, const ChatInput& input);

} // namespace vitrine::engine

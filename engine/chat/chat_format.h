// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A conversation as the tokens that a model was trained on: its chat template prints the prompt, and its tokenizer
// reads it. Texts of messages are never read as special tokens.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/answer_form.h"
#include "engine/chat/chat_message.h"
#include "engine/chat/chat_options.h"
#include "engine/chat/chat_template.h"
#include "engine/checkpoint/chat_files.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

struct RenderedChat {
    std::vector<std::int32_t> ids;
    std::string text; ///< the same with special tokens written out
    /// For each byte of the text where it comes from. The system message of the options counts as message 0.
    std::vector<jinja::Origin> origins;
};

/// Immutable; safe to use from several threads.
class ChatFormat {
public:
    /// `withTools` is used for conversations with tools; none: the same template.
    ChatFormat(std::shared_ptr<const Tokenizer> tokenizer, ChatTemplate chatTemplate,
               std::map<std::string, std::string> specialTokens = {}, std::optional<ChatTemplate> withTools = {});

    /// Throws what ChatTemplate::render throws, and BadInput where two system messages are given.
    RenderedChat render(std::span<const ChatMessage> messages, const ChatOptions& options) const;
    /// The text alone, with the origins of its bytes.
    jinja::Text prompt(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    const ChatTemplate& templateFor(const ChatOptions& options) const;
    /// Names of the options that are given and that the template never reads, as a user writes them.
    std::vector<std::string> unread(const ChatOptions& options) const;

    AnswerForm answerForm() const { return answerForm_; }
    /// Tokens that end the assistant's turn.
    const std::vector<std::int32_t>& stopIds() const { return stopIds_; }
    /// Tokens that end an answer within a conversation: those above, and harmony's end of a message.
    std::vector<std::int32_t> answerEnds() const;
    const Tokenizer& tokenizer() const { return *tokenizer_; }

private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    ChatTemplate template_;
    std::optional<ChatTemplate> withTools_;
    std::map<std::string, std::string> specialTokens_;
    AnswerForm answerForm_ = AnswerForm::Plain;
    std::vector<std::int32_t> stopIds_;
};

/// Which format a user chose for a model.
struct ChatChoice {
    std::string format = "auto"; ///< auto: the model's own template; else a built-in one
    std::string templateFile;    ///< a file with a template, which wins over the rest; empty: none
};

/// The format of a model whose files say `files` about chats. Null when it has no template and no built-in one fits:
/// such a model can only be given raw text. Throws BadInput for a template that cannot be read, Unsupported where a
/// built-in one needs a token that the tokenizer does not have.
std::shared_ptr<const ChatFormat> makeChatFormat(const ChatChoice& choice, const ChatFiles& files,
                                                 std::string_view modelType,
                                                 const std::shared_ptr<const Tokenizer>& tokenizer);

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A model's chat template: Jinja, run as transformers' apply_chat_template runs it.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/chat/chat_message.h"
#include "engine/chat/chat_options.h"
#include "engine/chat/jinja/text.h"

namespace vitrine::engine {

namespace jinja {
struct Tree;
}

/// The day of the local clock, YYYY-MM-DD.
std::string dayToday();

/// The message that a letter of a prompt comes from; -1: none. Roles, names and tools belong to no message.
std::int64_t messageOf(jinja::Origin origin);

/// Immutable; any number of threads may use one object.
class ChatTemplate {
public:
    /// `place` says in messages where the template stands. Throws BadInput "PLACE: line L, column C: what".
    ChatTemplate(std::string text, std::string place);

    /// The prompt of a conversation. `specialTokens` are variables. Throws BadInput "messages: what" where the template
    /// refuses the conversation, and "PLACE: line L, column C: what" where it cannot be run.
    jinja::Text render(std::span<const ChatMessage> messages, const std::map<std::string, std::string>& specialTokens,
                       const ChatOptions& options) const;

    const std::string& text() const { return text_; }
    const std::string& place() const { return place_; }
    /// Whether the template names this variable.
    bool names(std::string_view variable) const;
    /// Whether blocks {% generation %} say which letters the assistant writes.
    bool marksAnswers() const { return marksAnswers_; }

private:
    std::string text_;
    std::string place_;
    std::shared_ptr<const jinja::Tree> tree_;
    bool marksAnswers_ = false;
    bool takesParts_ = false; ///< goes over the parts of a content that is a list
};

} // namespace vitrine::engine

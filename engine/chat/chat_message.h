// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Messages of a conversation, as chat programs write them.

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// Names under which a message's thoughts are passed; the first is the one that most templates read.
inline constexpr std::array<const char*, 3> kThoughtNames = {"reasoning_content", "thinking", "reasoning"};

/// One message. The chat template sees all its members in their order; programs look at role and text only. Immutable,
/// and copies share what they hold.
class ChatMessage {
public:
    /// A message of text. Invalid UTF-8 is read as U+FFFD.
    ChatMessage(std::string role, const std::string& content);
    /// `members` is an object with the text "role", as readChatMessages() checks it.
    explicit ChatMessage(nlohmann::ordered_json members);

    const std::string& role() const;
    bool isAnswer() const { return role() == "assistant"; }
    /// The text of "content": whole, or the parts of a list joined; empty where there is none.
    const std::string& text() const;
    /// What the assistant thought before its answer, under whichever of the usual names; empty: nothing.
    std::string thoughts() const;
    const nlohmann::ordered_json& members() const;

private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

/// Reads a list of messages, or an object with the member "messages", in the form of OpenAI's chat API: role, content
/// (text, null, or a list of {"type": "text", "text": ...}) and whatever else the model's chat template reads, such as
/// reasoning_content, tool_calls and name. Which roles there are is the template's matter.
/// Throws BadInput "NAME: FIELD: what", Unsupported for contents that are no text.
std::vector<ChatMessage> readChatMessages(const nlohmann::ordered_json& json, const std::string& name);
/// The same from text.
std::vector<ChatMessage> parseChatMessages(std::string_view json, const std::string& name);
/// The same from a file.
std::vector<ChatMessage> readChatFile(const std::string& path);

} // namespace vitrine::engine

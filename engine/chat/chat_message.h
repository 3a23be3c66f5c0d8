// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Messages of a conversation, as chat programs write them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// A call that the assistant made.
struct ToolCall {
    std::string name;      ///< without a name space ("get_weather")
    std::string arguments; ///< JSON text
    std::string id;        ///< may be empty
};

struct ChatMessage {
    std::string role;    ///< system, developer, user, assistant or tool
    std::string content; ///< for the role tool: the result
    /// What the assistant thought before its answer (harmony: the channel analysis; Qwen 3: between <think> tags).
    std::string thinking;
    std::string name; ///< role tool: the function that answers; empty: the one called last
    std::vector<ToolCall> toolCalls;
};

/// Reads a list of messages, or an object with the member "messages", in the form of OpenAI's chat API: role, content
/// (text, or a list of {"type": "text", "text": ...}), thinking or reasoning_content, name, tool_calls.
/// Throws BadInput "NAME: FIELD: what".
std::vector<ChatMessage> parseChatMessages(std::string_view json, const std::string& name);
/// The same from JSON that was parsed already.
std::vector<ChatMessage> readChatMessages(const nlohmann::json& json, const std::string& name);
/// The same from a file.
std::vector<ChatMessage> readChatFile(const std::string& path);

} // namespace vitrine::engine

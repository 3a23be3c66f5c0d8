// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/chat_message.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/strict_json.h"
#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

namespace {

/// JSON as Python's json.dumps writes it: templates were trained on ", " and ": ".
std::string dumpLikePython(const nlohmann::json& value) {
    std::string out;
    if (value.is_object()) {
        for (const auto& [key, member] : value.items()) {
            out += (out.empty() ? "" : ", ") + nlohmann::json(key).dump() + ": " + dumpLikePython(member);
        }
        return "{" + out + "}";
    }
    if (value.is_array()) {
        for (const auto& element : value) {
            out += (out.empty() ? "" : ", ") + dumpLikePython(element);
        }
        return "[" + out + "]";
    }
    return value.dump();
}

std::string readContent(const JsonField& message) {
    const auto content = message.find("content");
    if (!content) {
        return {};
    }
    if (!content->value().is_array()) {
        return content->asString();
    }
    std::string text;
    for (std::size_t i = 0; i < content->arraySize(); ++i) {
        const JsonField part = content->element(i);
        if (const JsonField type = part.at("type"); type.asString() != "text") {
            type.unsupported(
                fmt::format("only text can be shown to the model, not {}", quotedForMessage(type.asString())));
        }
        text += part.at("text").asString();
    }
    return text;
}

std::vector<ToolCall> readToolCalls(const JsonField& message) {
    std::vector<ToolCall> calls;
    const auto list = message.find("tool_calls");
    for (std::size_t i = 0; list && i < list->arraySize(); ++i) {
        const JsonField entry = list->element(i);
        const JsonField function = entry.find("function").value_or(entry);
        const JsonField arguments = function.at("arguments");
        calls.push_back({function.at("name").asString(),
                         arguments.value().is_string() ? arguments.asString() : dumpLikePython(arguments.value()),
                         entry.text("id", "")});
    }
    return calls;
}

} // namespace

std::vector<ChatMessage> readChatMessages(const nlohmann::json& json, const std::string& name) {
    constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};
    const JsonField root(json, name);
    const JsonField list = json.is_array() ? root : root.at("messages");
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < list.arraySize(); ++i) {
        const JsonField entry = list.element(i);
        ChatMessage message;
        const JsonField role = entry.at("role");
        message.role = role.asString();
        if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end()) {
            role.bad(fmt::format("{} is not a role; use system, developer, user, assistant or tool",
                                 quotedForMessage(message.role)));
        }
        message.content = readContent(entry);
        message.thinking = entry.text("thinking", entry.text("reasoning_content", ""));
        message.name = entry.text("name", "");
        message.toolCalls = readToolCalls(entry);
        messages.push_back(std::move(message));
    }
    if (messages.empty()) {
        list.bad("there is no message");
    }
    return messages;
}

std::vector<ChatMessage> parseChatMessages(std::string_view json, const std::string& name) {
    return readChatMessages(base::parseStrictJson(json, name), name);
}

std::vector<ChatMessage> readChatFile(const std::string& path) {
    return readChatMessages(base::readStrictJson(path), path);
}

} // namespace vitrine::engine

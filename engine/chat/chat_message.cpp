// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/chat_message.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::ordered_json;

/// The text of a content whose form was checked.
std::string textOf(const Json& members) {
    const auto content = members.find("content");
    if (content == members.end() || content->is_null()) {
        return {};
    }
    if (content->is_string()) {
        return content->get<std::string>();
    }
    std::string text;
    for (const Json& part : *content) {
        text += part.at("text").get<std::string>();
    }
    return text;
}

[[noreturn]] void fail(const std::string& place, std::string_view what) {
    throw base::BadInput(fmt::format("{}: {}", place, what));
}

void checkPart(const Json& part, const std::string& place) {
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
        fail(place, "must be an object with a \"type\", as {\"type\": \"text\", \"text\": ...}");
    }
    const auto& type = part["type"].get_ref<const std::string&>();
    if (type != "text") {
        throw base::Unsupported(
            fmt::format("{}.type: only text can be shown to the model, not {}", place, quotedForMessage(type)));
    }
    if (!part.contains("text") || !part["text"].is_string()) {
        fail(place + ".text", "must be a string");
    }
}

void checkMessage(const Json& message, const std::string& place) {
    if (!message.is_object()) {
        fail(place, "must be an object with \"role\" and \"content\"");
    }
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) {
        fail(place + ".role", role == message.end() ? "is missing" : "must be a string");
    }
    const auto content = message.find("content");
    if (content == message.end() || content->is_null() || content->is_string()) {
        return;
    }
    if (!content->is_array()) {
        fail(place + ".content", "must be a string, null or a list of {\"type\": \"text\", \"text\": ...}");
    }
    for (std::size_t i = 0; i < content->size(); ++i) {
        checkPart((*content)[i], fmt::format("{}.content[{}]", place, i));
    }
}

Json textMessage(std::string role, const std::string& content) {
    Json members = Json::object();
    members["role"] = std::move(role);
    members["content"] = replaceInvalidUtf8(content);
    return members;
}

} // namespace

struct ChatMessage::Data {
    Json members;
    std::string role;
    std::string text;
};

ChatMessage::ChatMessage(std::string role, const std::string& content)
    : ChatMessage(textMessage(std::move(role), content)) {}

ChatMessage::ChatMessage(Json members) {
    Data data{std::move(members), {}, {}};
    data.role = data.members.at("role").get<std::string>();
    data.text = textOf(data.members);
    data_ = std::make_shared<const Data>(std::move(data));
}

const std::string& ChatMessage::role() const {
    return data_->role;
}
const std::string& ChatMessage::text() const {
    return data_->text;
}
std::string ChatMessage::thoughts() const {
    for (const char* const name : kThoughtNames) {
        const auto found = data_->members.find(name);
        if (found != data_->members.end() && !found->is_null()) {
            return found->is_string() ? found->get<std::string>() : std::string();
        }
    }
    return {};
}
const Json& ChatMessage::members() const {
    return data_->members;
}

std::vector<ChatMessage> readChatMessages(const Json& json, const std::string& name) {
    const bool named = json.is_object();
    const auto found = named ? json.find("messages") : json.end();
    if (named && found == json.end()) {
        fail(name + ": messages", "is missing");
    }
    const Json& list = named ? *found : json;
    const std::string place = named ? name + ": messages" : name;
    if (!list.is_array()) {
        fail(place, "must be a list of messages");
    }
    if (list.empty()) {
        fail(place, "there is no message");
    }
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < list.size(); ++i) {
        checkMessage(list[i], fmt::format("{}[{}]", named ? place : name + ": ", i));
        messages.emplace_back(list[i]);
    }
    return messages;
}

std::vector<ChatMessage> parseChatMessages(std::string_view json, const std::string& name) {
    return readChatMessages(base::parseOrderedJson(json, name), name);
}

std::vector<ChatMessage> readChatFile(const std::string& path) {
    return readChatMessages(base::readOrderedJson(path), path);
}

} // namespace vitrine::engine

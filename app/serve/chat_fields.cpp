// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/chat_fields.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/chat/chat_format.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

const Ordered* member(const Ordered& body, const char* field) {
    const auto found = body.find(field);
    return found == body.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> flag(const Ordered& body, const char* field) {
    const Ordered* value = member(body, field);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_boolean()) {
        refuse(field, "must be true or false");
    }
    return value->get<bool>();
}

/// The API has the arguments of a call as text; templates take an object.
void openArguments(Ordered& message) {
    const auto calls = message.is_object() ? message.find("tool_calls") : message.end();
    if (!message.is_object() || calls == message.end() || !calls->is_array()) {
        return;
    }
    for (Ordered& call : *calls) {
        Ordered* const function = call.is_object() && call.contains("function") ? &call["function"] : nullptr;
        if (function == nullptr || !function->is_object() || !function->contains("arguments") ||
            !(*function)["arguments"].is_string()) {
            continue;
        }
        try {
            Ordered arguments =
                base::parseOrderedJson((*function)["arguments"].get_ref<const std::string&>(), "arguments");
            if (arguments.is_object()) {
                (*function)["arguments"] = std::move(arguments);
            }
        } catch (const base::BadInput&) {
            continue; // a model can write arguments that are no JSON; the template gets them as they are
        }
    }
}

void readMessages(Ordered& body, ApiRequest& request) {
    const Ordered* found = member(body, "messages");
    if (found == nullptr || !found->is_array()) {
        refuse("messages", found == nullptr ? "missing; give an array of {\"role\", \"content\"}" : "must be an array");
    }
    Ordered& list = body["messages"];
    for (Ordered& message : list) {
        openArguments(message);
    }
    try {
        request.messages = engine::readChatMessages(list, "messages");
    } catch (const base::Error& error) {
        throw ApiError(kBadRequest, error.message(), "messages");
    }
}

void readTools(const Ordered& body, ApiRequest& request) {
    const Ordered* choice = member(body, "tool_choice");
    if (choice != nullptr && *choice != "auto" && *choice != "none") {
        refuse("tool_choice", "only \"auto\" and \"none\" are supported; the model decides what it calls");
    }
    const Ordered* tools = member(body, "tools");
    if (tools == nullptr) {
        return;
    }
    if (!tools->is_array() ||
        std::any_of(tools->begin(), tools->end(), [](const Ordered& tool) { return !tool.is_object(); })) {
        refuse("tools", "must be an array of {\"type\": \"function\", \"function\": {...}}");
    }
    // With "none" the model is not to know of them.
    if (!tools->empty() && !(choice != nullptr && *choice == "none")) {
        request.chat.tools = tools->dump();
    }
}

void readVariables(const Ordered& body, ApiRequest& request) {
    Ordered variables = Ordered::object();
    if (const Ordered* documents = member(body, "documents")) {
        if (!documents->is_array()) {
            refuse("documents", "must be an array of objects");
        }
        variables["documents"] = *documents;
    }
    if (const Ordered* further = member(body, "chat_template_kwargs")) {
        if (!further->is_object()) {
            refuse("chat_template_kwargs", "must be an object of variables for the chat template");
        }
        variables.update(*further);
    }
    request.chat.variables = variables.empty() ? std::string() : variables.dump();
}

void readEffort(const Ordered& body, ApiRequest& request) {
    constexpr std::array<std::string_view, 6> kEfforts = {"none", "minimal", "low", "medium", "high", "xhigh"};
    const Ordered* effort = member(body, "reasoning_effort");
    if (effort == nullptr) {
        return;
    }
    if (!effort->is_string() ||
        std::find(kEfforts.begin(), kEfforts.end(), effort->get<std::string>()) == kEfforts.end()) {
        refuse("reasoning_effort", "must be none, minimal, low, medium, high or xhigh");
    }
    request.chat.reasoningEffort = effort->get<std::string>();
}

void readEnd(const Ordered& body, ApiRequest& request) {
    const std::optional<bool> prompt = flag(body, "add_generation_prompt");
    request.chat.continueFinalMessage = flag(body, "continue_final_message").value_or(false);
    if (request.chat.continueFinalMessage && prompt.value_or(false)) {
        refuse("continue_final_message", "cannot stand together with \"add_generation_prompt\": true");
    }
    request.chat.addGenerationPrompt = prompt.value_or(!request.chat.continueFinalMessage);
}

} // namespace

void readChatFields(std::string_view body, const json& value, ApiRequest& request) {
    if (const auto own = value.find("chat_template"); own != value.end() && !own->is_null()) {
        refuse("chat_template", "not supported; start the server with the template (--chat-template FILE)");
    }
    Ordered ordered = base::parseOrderedJson(body, "body", {kMostBodyBytes, kDeepestBody, kMostBodyValues});
    readMessages(ordered, request);
    readTools(ordered, request);
    readVariables(ordered, request);
    readEffort(ordered, request);
    readEnd(ordered, request);
}

engine::ChatOptions chatOptionsOf(const engine::ChatFormat& format, const engine::ChatOptions& server,
                                  const ApiRequest& request) {
    for (const std::string& name : format.unread(request.chat)) {
        // An effort is a wish that every client of the API may send.
        if (name != "reasoning_effort") {
            const std::string field = name.substr(0, name.find('.'));
            const bool isDocuments = name == "chat_template_kwargs.documents";
            throw ApiError(kBadRequest,
                           fmt::format("{}: the model's chat template does not read it; leave it out",
                                       isDocuments ? "documents" : name),
                           isDocuments ? "documents" : field);
        }
    }
    engine::ChatOptions out = server;
    out.addGenerationPrompt = request.chat.addGenerationPrompt;
    out.continueFinalMessage = request.chat.continueFinalMessage;
    out.reasoningEffort = request.chat.reasoningEffort.empty() ? out.reasoningEffort : request.chat.reasoningEffort;
    out.tools = request.chat.tools.empty() ? out.tools : request.chat.tools;
    if (!request.chat.variables.empty()) {
        Ordered variables = server.variables.empty() ? Ordered::object() : Ordered::parse(server.variables);
        variables.update(Ordered::parse(request.chat.variables));
        out.variables = variables.dump();
    }
    return out;
}

} // namespace vitrine::app

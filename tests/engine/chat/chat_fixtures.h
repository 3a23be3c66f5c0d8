// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/chat/builtin_templates.h"
#include "engine/chat/chat_format.h"
#include "tests/engine/tokenizer/tokenizer_fixtures.h"

namespace vitrine::engine::test {

/// A built-in format with the tokenizer of a fixture.
inline ChatFormat builtInFormat(const std::string& name, const std::string& fixture, const std::string& modelType) {
    const auto tokenizer = tokenizerFixture(fixture);
    return {tokenizer, builtInTemplate(name, modelType, *tokenizer)};
}

/// The format of a model with this template.
inline ChatFormat formatOf(const std::string& chatTemplate, const std::string& fixture) {
    return {tokenizerFixture(fixture), ChatTemplate(chatTemplate, "chat_template.jinja")};
}

inline ChatMessage says(const std::string& role, const std::string& text, const std::string& thinking = "") {
    nlohmann::ordered_json members = {{"role", role}, {"content", text}};
    if (!thinking.empty()) {
        members["thinking"] = thinking;
    }
    return ChatMessage(std::move(members));
}

/// An assistant message that calls one function; `arguments` is JSON.
inline ChatMessage calls(const std::string& function, const std::string& arguments, const std::string& thinking = "") {
    nlohmann::ordered_json members = says("assistant", "", thinking).members();
    members["tool_calls"] = {
        {{"type", "function"},
         {"function", {{"name", function}, {"arguments", nlohmann::ordered_json::parse(arguments)}}}}};
    return ChatMessage(std::move(members));
}

} // namespace vitrine::engine::test

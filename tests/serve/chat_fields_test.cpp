// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/chat_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/engine/chat/chat_fixtures.h"

namespace vitrine::app {
namespace {

using testing::HasSubstr;

ApiRequest asked(const std::string& fields, const std::string& messages = R"([{"role": "user", "content": "Hi"}])") {
    return parseApiRequest(R"({"model": "m", "messages": )" + messages + (fields.empty() ? "" : ", " + fields) + "}",
                           Endpoint::Chat);
}

std::string refusalOfFields(const std::string& fields) {
    try {
        asked(fields);
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status, kBadRequest);
        return error.message;
    }
    return "accepted";
}

TEST(ChatFields, KeepTheOrderOfKeys) {
    const ApiRequest request = asked(R"("tools": [{"type": "function", "function": {"name": "f", "a": 1}}],
                "chat_template_kwargs": {"z": 1, "a": {"y": 2, "b": 3}}, "documents": [{"title": "t", "text": "x"}])",
                                     R"([{"role": "moderator", "content": "x", "b": 1, "a": 2}])");
    EXPECT_EQ(request.messages.at(0).members().dump(), R"({"role":"moderator","content":"x","b":1,"a":2})");
    EXPECT_EQ(request.chat.tools, R"([{"type":"function","function":{"name":"f","a":1}}])");
    EXPECT_EQ(request.chat.variables, R"({"documents":[{"title":"t","text":"x"}],"z":1,"a":{"y":2,"b":3}})");
}

TEST(ChatFields, ArgumentsOfCallsAreOpened) {
    const auto arguments = [](const std::string& text) {
        const nlohmann::json message = {
            {"role", "assistant"},
            {"tool_calls", {{{"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", text}}}}}}};
        return asked("", nlohmann::json::array({message}).dump())
            .messages.at(0)
            .members()["tool_calls"][0]["function"]["arguments"];
    };
    EXPECT_EQ(arguments(R"({"b": 1, "a": "x"})").dump(), R"({"b":1,"a":"x"})");
    EXPECT_EQ(arguments("not JSON"), "not JSON");
    EXPECT_EQ(arguments("[1]"), "[1]");
}

TEST(ChatFields, SayWhereThePromptEnds) {
    EXPECT_TRUE(asked("").chat.addGenerationPrompt);
    EXPECT_FALSE(asked(R"("add_generation_prompt": false)").chat.addGenerationPrompt);
    const ApiRequest request = asked(R"("continue_final_message": true)");
    EXPECT_TRUE(request.chat.continueFinalMessage);
    EXPECT_FALSE(request.chat.addGenerationPrompt);
    EXPECT_THAT(refusalOfFields(R"("continue_final_message": true, "add_generation_prompt": true)"),
                HasSubstr("cannot stand together"));
}

TEST(ChatFields, ToolsAreNotShownWithTheChoiceNone) {
    const std::string tools = R"("tools": [{"type": "function"}])";
    EXPECT_FALSE(asked(tools + R"(, "tool_choice": "auto")").chat.tools.empty());
    EXPECT_TRUE(asked(tools + R"(, "tool_choice": "none")").chat.tools.empty());
    EXPECT_TRUE(asked(R"("tools": [])").chat.tools.empty());
}

TEST(ChatFields, EffortsAreThoseOfTheApi) {
    for (const std::string effort : {"none", "minimal", "low", "medium", "high", "xhigh"}) {
        EXPECT_EQ(asked(R"("reasoning_effort": ")" + effort + "\"").chat.reasoningEffort, effort);
    }
    EXPECT_THAT(refusalOfFields(R"("reasoning_effort": "extreme")"), HasSubstr("reasoning_effort: must be none"));
}

TEST(ChatFields, WrongOnesAreNamed) {
    EXPECT_THAT(refusalOfFields(R"("tools": {})"), HasSubstr("tools: must be an array"));
    EXPECT_THAT(refusalOfFields(R"("tool_choice": "required")"), HasSubstr("tool_choice: only"));
    EXPECT_THAT(refusalOfFields(R"("chat_template_kwargs": [])"), HasSubstr("chat_template_kwargs: must be an object"));
    EXPECT_THAT(refusalOfFields(R"("documents": "a")"), HasSubstr("documents: must be an array"));
    EXPECT_THAT(refusalOfFields(R"("chat_template": "{{ x }}")"), HasSubstr("--chat-template"));
    EXPECT_THAT(refusalOfFields(R"("add_generation_prompt": 1)"), HasSubstr("must be true or false"));
}

TEST(ChatFields, WhatTheTemplateDoesNotReadIsRefused) {
    const engine::ChatFormat format = engine::test::formatOf("{{ messages }}{{ enable_thinking }}", "qwen-style");
    const auto problem = [&](const std::string& fields) {
        try {
            chatOptionsOf(format, {}, asked(fields));
        } catch (const ApiError& error) {
            return error.param + " / " + error.message;
        }
        return std::string("accepted");
    };
    EXPECT_EQ(problem(R"("chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low")"), "accepted");
    EXPECT_THAT(problem(R"("tools": [{"type": "function"}])"), HasSubstr("tools / tools: the model's chat template"));
    EXPECT_THAT(problem(R"("documents": [])"), HasSubstr("documents / documents: "));
    EXPECT_THAT(problem(R"("chat_template_kwargs": {"mode": 1})"),
                HasSubstr("chat_template_kwargs / chat_template_kwargs.mode: "));
}

TEST(ChatFields, StandOverThoseOfTheServer) {
    const engine::ChatFormat format = engine::test::formatOf("{{ a }}{{ b }}{{ reasoning_effort }}", "qwen-style");
    engine::ChatOptions server;
    server.reasoningEffort = "low";
    server.system = "S";
    server.variables = R"({"a": 1, "b": 2})";
    const engine::ChatOptions same = chatOptionsOf(format, server, asked(""));
    EXPECT_EQ(same.reasoningEffort, "low");
    EXPECT_EQ(same.variables, server.variables);
    EXPECT_EQ(same.system, "S");
    const engine::ChatOptions own =
        chatOptionsOf(format, server, asked(R"("chat_template_kwargs": {"b": 3}, "reasoning_effort": "high")"));
    EXPECT_EQ(own.reasoningEffort, "high");
    EXPECT_EQ(own.variables, R"({"a":1,"b":3})");
}

} // namespace
} // namespace vitrine::app

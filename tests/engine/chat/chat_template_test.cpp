// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "tests/engine/chat/chat_fixtures.h"

namespace vitrine::engine {
namespace {

using test::says;
using testing::HasSubstr;

ChatMessage message(const std::string& json) {
    return ChatMessage(nlohmann::ordered_json::parse(json));
}

std::string rendered(const std::string& text, const std::vector<ChatMessage>& messages, const ChatOptions& options = {},
                     const std::map<std::string, std::string>& specialTokens = {}) {
    return ChatTemplate(text, "T").render(messages, specialTokens, options).bytes();
}

// What transformers 5.24 hands to a template.
TEST(ChatTemplate, SeesMessagesAsTheyWereGiven) {
    EXPECT_EQ(
        rendered("{{ messages[0] | tojson }}", {message(R"({"z": 1, "role": "user", "a": {"c": 1, "b": null}})")}),
        R"({"z": 1, "role": "user", "a": {"c": 1, "b": null}})");
    EXPECT_EQ(rendered("{{ messages[0] | tojson }}", {message(R"({"role": "assistant", "content": null})")}),
              R"({"role": "assistant"})");
    EXPECT_EQ(rendered("{{ messages[0] | tojson }}", {message(R"({"role": "assistant", "reasoning": "r"})")}),
              R"({"thinking": "r", "role": "assistant", "reasoning": "r", "reasoning_content": "r"})");
    EXPECT_EQ(rendered("{{ messages[0] | tojson }}",
                       {message(R"({"role": "a", "thinking": "t", "reasoning_content": "r"})")}),
              R"({"thinking": "t", "role": "a", "reasoning_content": "r"})");
}

TEST(ChatTemplate, PartsAreJoinedForTemplatesThatTakeTexts) {
    const ChatMessage parts =
        message(R"({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})");
    EXPECT_EQ(rendered("{{ messages[0].content }}", {parts}), "ab");
    EXPECT_EQ(
        rendered("{% for m in messages %}{% for p in m['content'] %}<{{ p.text }}>{% endfor %}{% endfor %}", {parts}),
        "<a><b>");
    EXPECT_EQ(rendered("{% macro show(content) %}{% for p in content %}<{{ p.text }}>{% endfor %}{% endmacro %}"
                       "{{ show(messages[0].content) }}",
                       {parts}),
              "<a><b>");
}

TEST(ChatTemplate, OptionsAreVariables) {
    const std::string all = "{{ tools }}|{{ documents }}|{{ add_generation_prompt }}|{{ reasoning_effort }}|"
                            "{{ enable_thinking is defined }}|{{ date_string }}|{{ bos_token }}{{ eos_token }}";
    EXPECT_EQ(rendered(all, {says("user", "a")}, {}, {{"bos_token", "<s>"}}), "None|None|True||False||<s>");
    ChatOptions options;
    options.tools = R"([{"b": 1, "a": 2}])";
    options.reasoningEffort = "xhigh";
    options.thinking = false;
    options.date = "2026-03-07";
    options.addGenerationPrompt = false;
    options.variables = R"({"bos_token": "B", "documents": ["d"]})";
    EXPECT_EQ(rendered(all, {says("user", "a")}, options, {{"bos_token", "<s>"}}),
              "[{'b': 1, 'a': 2}]|['d']|False|xhigh|True|07 Mar 2026|B");
    EXPECT_EQ(rendered("{{ strftime_now('%A %j %Y') }}", {says("user", "a")}, options), "Saturday 066 2026");
}

TEST(ChatTemplate, TheAnswerCanGoOnWithTheLastMessage) {
    ChatOptions options;
    options.addGenerationPrompt = false;
    options.continueFinalMessage = true;
    const std::vector<ChatMessage> chat = {says("user", "x"), says("assistant", "The answer ")};
    EXPECT_EQ(rendered("{% for m in messages %}[{{ m.content }}]{% endfor %}", chat, options), "[x][The answer ");
    EXPECT_EQ(rendered("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}", chat, options), "[x][The answer");
    EXPECT_THROW(rendered("{{ messages[0].content }}", chat, options), base::BadInput);
    EXPECT_THROW(rendered("{{ messages[0].role }}", {message(R"({"role": "assistant"})")}, options), base::BadInput);
}

TEST(ChatTemplate, LettersNameTheirMessage) {
    const jinja::Text text = ChatTemplate("{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}", "T")
                                 .render(std::vector{says("u", "a"), says("b", "c")}, {}, {});
    ASSERT_EQ(text.bytes(), "u:ab:c");
    std::vector<std::int64_t> messages;
    for (std::size_t i = 0; i < text.size(); ++i) {
        messages.push_back(messageOf(text.originAt(i)));
    }
    EXPECT_THAT(messages, testing::ElementsAre(-1, -1, 0, -1, -1, 1)) << "roles are no text of a message";
}

TEST(ChatTemplate, ErrorsNameThePlace) {
    const auto problem = [](const std::string& text) {
        try {
            rendered(text, {says("user", "a")});
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string();
    };
    EXPECT_THAT(problem("\n{{ 1 + 'a' }}"), HasSubstr("T: line 2, column "));
    EXPECT_THAT(problem("{% if %}"), HasSubstr("T: line 1, column "));
    EXPECT_EQ(problem("{{ raise_exception('roles must alternate') }}"),
              "messages: the chat template refuses them: roles must alternate");
    EXPECT_THAT(problem("\xFF"), HasSubstr("UTF-8"));
    ChatOptions options;
    options.date = "tomorrow";
    EXPECT_THROW(rendered("x", {says("user", "a")}, options), base::BadInput);
}

} // namespace
} // namespace vitrine::engine

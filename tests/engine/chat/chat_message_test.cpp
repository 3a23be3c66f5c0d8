// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/chat_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using testing::HasSubstr;

TEST(ChatMessages, AreReadInTheFormOfTheChatApi) {
    const auto messages = parseChatMessages(
        R"({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "reasoning_content": "t",
             "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"z": [1, 2], "y": "ä"}}}]},
            {"role": "moderator", "content": "r", "name": "f"}]})",
        "chat.json");
    ASSERT_EQ(messages.size(), 3U);
    EXPECT_EQ(messages[0].text(), "ab");
    EXPECT_EQ(messages[1].text(), "");
    EXPECT_EQ(messages[1].thoughts(), "t");
    EXPECT_TRUE(messages[1].isAnswer());
    EXPECT_EQ(messages[1].members()["tool_calls"][0]["function"]["arguments"].dump(), R"({"z":[1,2],"y":"ä"})");
    EXPECT_EQ(messages[2].role(), "moderator");
}

TEST(ChatMessages, BrokenOnesNameTheirPlace) {
    for (const std::string bad : {"[]", "{}", "[1]", R"([{"role": 1, "content": ""}])", R"([{"content": ""}])",
                                  R"([{"role": "user", "content": 1}])", R"([{"role": "user", "content": ["a"]}])",
                                  R"([{"role": "user", "content": [{"type": "text", "text": 1}]}])",
                                  R"([{"role": "user", "content": "a"}] x)", R"({"messages": 1})"}) {
        EXPECT_THROW(parseChatMessages(bad, "chat.json"), base::BadInput) << bad;
    }
    EXPECT_THAT([] { parseChatMessages(R"({"messages": [{"role": "user", "content": 1}]})", "chat.json"); },
                testing::ThrowsMessage<base::BadInput>(HasSubstr("chat.json: messages[0].content: must be a string")));
    EXPECT_THROW(parseChatMessages(R"([{"role": "user", "content": [{"type": "image_url"}]}])", "chat.json"),
                 base::Unsupported);
}

TEST(ChatMessages, TextsAreMadeValid) {
    EXPECT_EQ(ChatMessage("user", "a\xFF").text(), "a\xEF\xBF\xBD");
}

} // namespace
} // namespace vitrine::engine

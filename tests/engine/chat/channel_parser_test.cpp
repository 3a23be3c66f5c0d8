// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/channel_parser.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/tokenizer_fixtures.h"

namespace vitrine::engine {
namespace {

class HarmonyChannels : public testing::Test {
protected:
    /// Feeds the text's tokens one at a time and joins the chunks of each message again.
    void feed(const std::string& text) {
        std::vector<ChannelMessage> shown;
        const auto take = [&](const std::vector<ChannelText>& chunks) {
            for (const ChannelText& chunk : chunks) {
                if (chunk.startsMessage) {
                    shown.push_back({chunk.channel, chunk.recipient, "", "", false});
                }
                ASSERT_FALSE(shown.empty()) << "text before any message: " << chunk.text;
                EXPECT_EQ(shown.back().channel, chunk.channel);
                shown.back().text += chunk.text;
            }
        };
        for (const std::int32_t id : tokenizer_->encode(text, false)) {
            take(parser_.push(id));
        }
        take(parser_.finish());
        ASSERT_EQ(shown.size(), parser_.messages().size());
        for (std::size_t i = 0; i < shown.size(); ++i) {
            EXPECT_EQ(shown[i].text, parser_.messages()[i].text);
            EXPECT_EQ(shown[i].recipient, parser_.messages()[i].recipient);
        }
    }

    std::shared_ptr<const Tokenizer> tokenizer_ = test::tokenizerFixture("o200k-style");
    ChannelParser parser_{AnswerForm::Harmony, tokenizer_};
};

TEST_F(HarmonyChannels, splitsAnalysisAndFinal) {
    feed("<|channel|>analysis<|message|>Let me  think 😀.<|end|><|start|>assistant<|channel|>final<|message|>"
         "Fünf\n\nTage<|return|>");
    ASSERT_EQ(parser_.messages().size(), 2U);
    EXPECT_EQ(parser_.messages()[0].channel, "analysis");
    EXPECT_EQ(parser_.messages()[0].text, "Let me  think 😀.");
    EXPECT_TRUE(parser_.messages()[0].complete);
    EXPECT_EQ(parser_.messages()[1].channel, "final");
    EXPECT_EQ(parser_.messages()[1].text, "Fünf\n\nTage");
}

TEST_F(HarmonyChannels, readsToolCallsInBothHeaderForms) {
    feed("<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"a\":1}<|call|>"
         "<|start|>assistant to=functions.other<|channel|>commentary json<|message|>{}<|call|>");
    ASSERT_EQ(parser_.messages().size(), 2U);
    for (const ChannelMessage& message : parser_.messages()) {
        EXPECT_EQ(message.channel, "commentary");
        EXPECT_EQ(message.contentType, "json");
        EXPECT_TRUE(message.complete);
    }
    EXPECT_EQ(parser_.messages()[0].recipient, "functions.get_weather");
    EXPECT_EQ(parser_.messages()[1].recipient, "functions.other");
    EXPECT_EQ(parser_.messages()[0].text, "{\"a\":1}");
}

TEST_F(HarmonyChannels, readsARecipientThatFollowsThePrompt) {
    feed(" to=functions.f<|channel|>commentary<|message|>x");
    ASSERT_EQ(parser_.messages().size(), 1U);
    EXPECT_EQ(parser_.messages()[0].recipient, "functions.f");
    EXPECT_FALSE(parser_.messages()[0].complete);
}

TEST_F(HarmonyChannels, showsTextThatHasNoHeaderAsFinal) {
    feed("Just text, twice.<|end|> and more");
    ASSERT_EQ(parser_.messages().size(), 2U);
    EXPECT_EQ(parser_.messages()[0].channel, "final");
    EXPECT_EQ(parser_.messages()[0].text, "Just text, twice.");
    EXPECT_EQ(parser_.messages()[1].text, " and more");
}

TEST_F(HarmonyChannels, showsAHeaderThatNeverEnds) {
    std::string endless;
    for (int i = 0; i < 100; ++i) {
        endless += "word ";
    }
    feed("<|channel|>" + endless);
    ASSERT_EQ(parser_.messages().size(), 1U);
    EXPECT_EQ(parser_.messages()[0].text, endless);
}

TEST_F(HarmonyChannels, showsOnlyWholeCodePoints) {
    parser_.push(*tokenizer_->idOf("<|channel|>"));
    for (const std::int32_t id : tokenizer_->encode("final", false)) {
        parser_.push(id);
    }
    parser_.push(*tokenizer_->idOf("<|message|>"));
    const std::vector<std::int32_t> ids = tokenizer_->encode("\xF0\x9F\x98\x80", false);
    ASSERT_GT(ids.size(), 1U) << "this code point must be cut into several tokens";
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        EXPECT_TRUE(parser_.push(ids[i]).empty());
    }
    const auto last = parser_.push(ids.back());
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(last[0].text, "\xF0\x9F\x98\x80");
}

TEST(OtherChannels, haveOneFinalMessage) {
    const auto tokenizer = test::tokenizerFixture("qwen-style");
    ChannelParser parser(AnswerForm::Plain, tokenizer);
    std::string text;
    for (const std::int32_t id : tokenizer->encode("a <|channel|> b<|im_end|>", false)) {
        for (const ChannelText& chunk : parser.push(id)) {
            EXPECT_EQ(chunk.channel, "final");
            EXPECT_EQ(chunk.startsMessage, text.empty());
            text += chunk.text;
        }
    }
    EXPECT_TRUE(parser.finish().empty());
    EXPECT_EQ(text, "a <|channel|> b");
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/judge_lines.h"

#include <array>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/engine/rl/rewards/attempts.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

TEST(JudgeLines, APromptOfTextIsSentAsItIs) {
    EXPECT_EQ(judgeRequest(test::attempt(3, "2\n")),
              R"({"id":3,"prompt":"1+1=","messages":[],"answer":"2\n","cut":false,"turn":0,)"
              R"("row":{"solution":2},"evaluation":false})");
}

TEST(JudgeLines, AConversationIsSentWithTheUsersLastMessageAsPrompt) {
    Attempt attempt = test::attempt(4, "well");
    attempt.messages = {ChatMessage("system", "be short"), ChatMessage("user", "first"),
                        ChatMessage("assistant", "what?"), ChatMessage("user", "second")};
    attempt.cut = true;
    attempt.turn = 1;
    attempt.isEvaluation = true;
    const json line = json::parse(judgeRequest(attempt));
    EXPECT_EQ(line["prompt"], "second");
    EXPECT_EQ(line["messages"].size(), 4U);
    EXPECT_EQ(line["messages"][2], (json{{"role", "assistant"}, {"content", "what?"}}));
    EXPECT_EQ(line["cut"], true);
    EXPECT_EQ(line["turn"], 1);
    EXPECT_EQ(line["evaluation"], true);
}

TEST(JudgeLines, InvalidBytesAreReplacedAndNoLineEndIsInside) {
    const std::string line = judgeRequest(test::attempt(1, "a\xff\r\n\xe2\x82"));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(json::parse(line)["answer"], "a\xef\xbf\xbd\r\n\xef\xbf\xbd");
}

TEST(JudgeLines, ReadsRewardsAndMessages) {
    EXPECT_EQ(readJudgeReply("0.5", 1).reward, 0.5);
    EXPECT_EQ(readJudgeReply(" -3 \r", 1).reward, -3.0);
    EXPECT_EQ(readJudgeReply("1e-3", 1).reward, 0.001);
    EXPECT_EQ(readJudgeReply(R"({"reward": 0.25, "why": ["long"]})", 1).reward, 0.25);
    EXPECT_EQ(readJudgeReply(R"({"score": 2, "id": 1})", 1).reward, 2.0);
    const Judgement reply = readJudgeReply(R"({"message": "and then?"})", 5);
    EXPECT_EQ(reply.id, 5);
    EXPECT_EQ(reply.reply, "and then?");
    EXPECT_FALSE(reply.reward);
    EXPECT_EQ(reply.error, "");
}

TEST(JudgeLines, AllElseIsAnErrorThatQuotesIt) {
    for (const char* line : {"",
                             " ",
                             "nonsense",
                             "nan",
                             "NaN",
                             "inf",
                             "1e999",
                             "true",
                             "null",
                             "\"0.5\"",
                             "[1]",
                             "{}",
                             "0.5 0.5",
                             "{\"reward\": \"1\"}",
                             "{\"reward\": null}",
                             "{\"reward\": NaN}",
                             "{\"reward\": 1, \"message\": \"x\"}",
                             "{\"reward\": 1, \"score\": 1}",
                             "{\"reward\": 1, \"reward\": 2}",
                             "{\"message\": 1}",
                             "\xff"}) {
        const Judgement judgement = readJudgeReply(line, 9);
        EXPECT_EQ(judgement.id, 9) << line;
        EXPECT_FALSE(judgement.reward) << line;
        EXPECT_FALSE(judgement.reply) << line;
        EXPECT_NE(judgement.error.find(" is no answer; a finite number is one"), std::string::npos)
            << line << ": " << judgement.error;
    }
    EXPECT_EQ(readJudgeReply("nonsense", 9).error,
              "reward_command: \"nonsense\" is no answer; a finite number is one, or {\"reward\": number}, or "
              "{\"message\": text}");
    EXPECT_LT(readJudgeReply(std::string(500, 'y'), 9).error.size(), 250U);
    EXPECT_FALSE(readJudgeReply(std::string(100'000, '['), 9).reward) << "depth is bounded";
}

TEST(JudgeLines, AnAnswerToAnotherIdIsAnError) {
    for (const char* line : {R"({"reward": 1, "id": 8})", R"({"message": "x", "id": 8})"}) {
        const Judgement judgement = readJudgeReply(line, 9);
        EXPECT_FALSE(judgement.reward);
        EXPECT_FALSE(judgement.reply);
        EXPECT_EQ(judgement.error, "reward_command: the program answered to id 8 where 9 was asked");
    }
    EXPECT_FALSE(readJudgeReply(R"({"reward": 1, "id": "9"})", 9).reward);
}

} // namespace
} // namespace vitrine::engine

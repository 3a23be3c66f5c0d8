// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/checker.h"

#include <chrono>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

TEST(Checkers, AreFoundByName) {
    ASSERT_EQ(checkers().size(), 5U);
    for (const Checker& checker : checkers()) {
        EXPECT_EQ(findChecker(checker.name), &checker);
    }
    EXPECT_EQ(findChecker("Exact"), nullptr);
}

TEST(Checkers, AnyTextIsJudgedInTimeLinearInIt) {
    const std::vector<std::string> answers = test::hostileAnswers();
    const auto begin = std::chrono::steady_clock::now();
    for (const Checker& checker : checkers()) {
        const nlohmann::json expected = checker.name == "regex"    ? "Answer: 9+$"
                                        : checker.name == "choice" ? "E"
                                                                   : "123456789/7";
        checker.requireAnswer(expected);
        for (const std::string& answer : answers) {
            EXPECT_EQ(checker.judge(expected, answer), 0) << checker.name << ": " << answer.substr(0, 20);
        }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)); // squares of a megabyte take days
}

TEST(Checkers, AnswersThatCannotBeTextsAreRefused) {
    for (const Checker& checker : checkers()) {
        for (const nlohmann::json& answer :
             {nlohmann::json(), nlohmann::json::object(), nlohmann::json::array({1, 2})}) {
            EXPECT_TRUE(test::answerError(checker.name, answer).starts_with("answer: must be ")) << checker.name;
        }
        EXPECT_TRUE(test::answerError(checker.name, "").starts_with("answer: ")) << checker.name;
    }
    EXPECT_EQ(test::answerError("exact", nlohmann::json::object()), "answer: must be text or a number, not object");
}

TEST(Checkers, ExactTexts) {
    EXPECT_EQ(test::judged("exact", "Paris", " Paris\n"), 1);
    EXPECT_EQ(test::judged("exact", " Paris ", "Paris"), 1);
    EXPECT_EQ(test::judged("exact", "Paris", "paris"), 0);
    EXPECT_EQ(test::judged("exact", "Paris", "Paris."), 0);
    EXPECT_EQ(test::judged("exact", 42, "42"), 1);
    EXPECT_EQ(test::judged("exact", true, "true"), 1);
    EXPECT_EQ(test::answerError("exact", "  "), "answer: is empty; give the text that is right, or remove the row");
}

TEST(Checkers, Numbers) {
    EXPECT_EQ(test::judged("number", 42, "so it is 42."), 1);
    EXPECT_EQ(test::judged("number", "1,000", "1000.0 dollars"), 1);
    EXPECT_EQ(test::judged("number", "She has 3 + 4 = <<3+4=7>>7 apples.\n#### 7", "7"), 1);
    EXPECT_EQ(test::judged("number", -2.5,
                           "\xE2\x88\x92"
                           "2.50"),
              1);
    EXPECT_EQ(test::judged("number", "50%", "50"), 1);
    EXPECT_EQ(test::judged("number", 1000000, "1000000.5"), 1);
    EXPECT_EQ(test::judged("number", 1000000, "1000002"), 0);
    EXPECT_EQ(test::judged("number", 0, "0.0"), 1);
    EXPECT_EQ(test::judged("number", 0, "0.0000001"), 0);
    EXPECT_EQ(test::judged("number", 42, "42 or 43"), 0);
    EXPECT_EQ(test::judged("number", 42, "none"), 0);
    EXPECT_EQ(test::answerError("number", "none"), "answer: there is no number in \"none\"; choose another checker");
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

TEST(LettersTask, TheCountIsRightAndNoOtherNumber) {
    test::forDrawnProblems(*findTask("letters"), 200, [](std::int64_t difficulty, const TaskProblem& problem) {
        const std::string& text = problem.question;
        const char letter = text.at(text.find("letter ") + 7);
        const std::size_t begin = text.find(" in ") + 4;
        const std::string word = text.substr(begin, text.find('?') - begin);
        const auto count = std::ranges::count(word, letter);
        EXPECT_GE(count, 1) << text;
        EXPECT_EQ(test::rewardOf("letters", *problem.facts, std::to_string(count)), 1) << text;
        EXPECT_EQ(test::rewardOf("letters", *problem.facts, "It occurs " + std::to_string(count) + " times."), 1);
        EXPECT_EQ(test::rewardOf("letters", *problem.facts, std::to_string(count + 1)), 0.1);
        EXPECT_EQ(test::rewardOf("letters", *problem.facts, "often"), 0);
        EXPECT_LE(word.size(), difficulty == 1 ? 3U : 32U);
    });
}

} // namespace
} // namespace vitrine::engine

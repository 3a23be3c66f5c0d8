// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <string>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

/// Whether all brackets of a text are closed by their own kind.
bool isBalanced(std::string_view text) {
    std::string open;
    for (const char c : text) {
        const std::size_t kind = std::string_view("([{<").find(c);
        if (kind != std::string_view::npos) {
            open += std::string_view(")]}>")[kind];
        } else if (open.empty() || open.back() != c) {
            return false;
        } else {
            open.pop_back();
        }
    }
    return open.empty();
}

TEST(BracketsTask, TheAnswerBalancesTheSequence) {
    test::forDrawnProblems(*findTask("brackets"), 200, [](std::int64_t difficulty, const TaskProblem& problem) {
        const auto sequence = problem.facts->at("sequence").get<std::string>();
        const auto answer = problem.facts->at("answer").get<std::string>();
        EXPECT_NE(problem.question.find(" " + sequence + " "), std::string::npos);
        EXPECT_TRUE(isBalanced(sequence + answer)) << sequence;
        EXPECT_FALSE(answer.empty());
        EXPECT_LE(answer.size(), difficulty == 1 ? 1U : 20U);
        EXPECT_EQ(test::rewardOf("brackets", *problem.facts, answer), 1);
        EXPECT_EQ(test::rewardOf("brackets", *problem.facts, "They are " + answer + " ."), 1);
        EXPECT_EQ(test::rewardOf("brackets", *problem.facts, sequence + answer), 1);
        EXPECT_EQ(test::rewardOf("brackets", *problem.facts, sequence), 0);
        EXPECT_EQ(test::rewardOf("brackets", *problem.facts, ""), 0);
        EXPECT_LE(test::rewardOf("brackets", *problem.facts, answer + ")"), 0.2);
        EXPECT_LT(test::rewardOf("brackets", *problem.facts, answer.substr(1)), 1);
    });
}

TEST(BracketsTask, ABeginningIsWorthALittle) {
    const nlohmann::json facts = {{"sequence", "([{"}, {"answer", "}])"}};
    EXPECT_DOUBLE_EQ(test::rewardOf("brackets", facts, "}]"), 0.2 * 2 / 3);
    EXPECT_DOUBLE_EQ(test::rewardOf("brackets", facts, "}))"), 0.2 / 3);
    EXPECT_EQ(test::rewardOf("brackets", facts, ")]}"), 0);
}

} // namespace
} // namespace vitrine::engine

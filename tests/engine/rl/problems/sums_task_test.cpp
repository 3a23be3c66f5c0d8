// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <regex>
#include <string>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

TEST(SumsTask, TheSumIsRightAndNoOtherNumber) {
    test::forDrawnProblems(*findTask("sums"), 200, [](std::int64_t difficulty, const TaskProblem& problem) {
        const std::string terms = problem.question.substr(0, problem.question.find('?'));
        const std::regex number("[0-9]+");
        std::int64_t sum = 0;
        for (std::sregex_iterator it(terms.begin(), terms.end(), number), end; it != end; ++it) {
            sum += std::stoll(it->str());
        }
        EXPECT_EQ(test::rewardOf("sums", *problem.facts, std::to_string(sum)), 1) << problem.question;
        EXPECT_EQ(test::rewardOf("sums", *problem.facts, "1 + 1 = 2, so it is " + std::to_string(sum) + "."), 1);
        EXPECT_EQ(test::rewardOf("sums", *problem.facts, std::to_string(sum + 1)), 0.1);
        EXPECT_EQ(test::rewardOf("sums", *problem.facts, std::to_string(-1 - sum)), 0.1);
        EXPECT_EQ(test::rewardOf("sums", *problem.facts, "I do not know"), 0);
        EXPECT_LE(sum, difficulty == 1 ? 9 : 1'000'000);
    });
}

} // namespace
} // namespace vitrine::engine

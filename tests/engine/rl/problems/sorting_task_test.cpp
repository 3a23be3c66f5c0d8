// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

TEST(SortingTask, TheListIsSortedAndTheQuestionsIsNot) {
    test::forDrawnProblems(*findTask("sorting"), 200, [](std::int64_t difficulty, const TaskProblem& problem) {
        const auto items = problem.facts->at("answer").get<std::vector<std::string>>();
        const bool numbers = items.front().front() <= '9';
        for (std::size_t i = 1; i < items.size(); ++i) {
            EXPECT_TRUE(numbers ? std::stoll(items[i - 1]) < std::stoll(items[i]) : items[i - 1] < items[i]);
        }
        const std::string answer = fmt::format("{}", fmt::join(items, ", "));
        EXPECT_EQ(problem.question.find(": " + answer + "."), std::string::npos) << problem.question;
        EXPECT_EQ(test::rewardOf("sorting", *problem.facts, answer), 1);
        EXPECT_EQ(test::rewardOf("sorting", *problem.facts, fmt::format("Here it is:\n[{}].\n", fmt::join(items, ","))),
                  1);
        std::vector<std::string> wrong = items;
        std::ranges::reverse(wrong);
        EXPECT_LE(test::rewardOf("sorting", *problem.facts, fmt::format("{}", fmt::join(wrong, ", "))), 0.5);
        EXPECT_LE(test::rewardOf("sorting", *problem.facts, answer + ", " + items.back()), 0.5);
        EXPECT_EQ(test::rewardOf("sorting", *problem.facts, ""), 0);
        EXPECT_TRUE(difficulty > 1 || items.size() == 2);
    });
}

TEST(SortingTask, ItemsInTheirPlaceAreWorthAShare) {
    const nlohmann::json facts = {{"answer", {"1", "2", "3", "4"}}};
    EXPECT_DOUBLE_EQ(test::rewardOf("sorting", facts, "1, 2, 4, 3"), 0.25);
    EXPECT_DOUBLE_EQ(test::rewardOf("sorting", facts, "1, 2"), 0.25);
    EXPECT_DOUBLE_EQ(test::rewardOf("sorting", facts, "1, 2, 3, 4, 5"), 0.4);
    EXPECT_DOUBLE_EQ(test::rewardOf("sorting", facts, "sorted: 1,2,3,4"), 1);
    EXPECT_DOUBLE_EQ(test::rewardOf("sorting", facts, "1,,2,3"), 0.125);
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/task.h"

#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

TEST(ProblemDraws, AreUniformAndOfTheirNumbersAlone) {
    std::map<std::int64_t, int> counts;
    for (std::uint64_t number = 0; number < 600; ++number) {
        ProblemDraws draws(3, 1, number), again(3, 1, number);
        for (int i = 0; i < 10; ++i) {
            const std::int64_t drawn = draws.between(-2, 3);
            EXPECT_EQ(drawn, again.between(-2, 3));
            ++counts[drawn];
        }
    }
    ASSERT_EQ(counts.size(), 6U);
    for (const auto& [value, count] : counts) {
        EXPECT_GE(value, -2);
        EXPECT_NEAR(count, 1000, 150);
    }
}

TEST(ProblemDraws, WidestAndNarrowestRanges) {
    ProblemDraws draws(3, 1, 0);
    EXPECT_EQ(draws.between(5, 5), 5);
    const std::int64_t least = std::numeric_limits<std::int64_t>::min();
    EXPECT_NE(draws.between(least, std::numeric_limits<std::int64_t>::max()),
              draws.between(least, std::numeric_limits<std::int64_t>::max()));
}

TEST(Tasks, AreFoundByName) {
    ASSERT_EQ(tasks().size(), 5U);
    for (const Task& task : tasks()) {
        EXPECT_EQ(findTask(task.name), &task);
        EXPECT_EQ(task.mostDifficulty, 10) << task.name;
    }
    EXPECT_EQ(findTask("sum"), nullptr);
}

TEST(Tasks, AnyTextIsJudgedInTimeLinearInIt) {
    const std::vector<std::string> answers = test::hostileAnswers();
    const auto begin = std::chrono::steady_clock::now();
    for (const Task& task : tasks()) {
        ProblemDraws draws(1, 1, 1);
        const TaskProblem problem = task.make(10, draws);
        for (const std::string& answer : answers) {
            const double reward = task.check(*problem.facts, answer);
            EXPECT_GE(reward, 0);
            EXPECT_LT(reward, 1) << task.name << ": " << answer.substr(0, 20);
        }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)); // squares of a megabyte take days
}

} // namespace
} // namespace vitrine::engine

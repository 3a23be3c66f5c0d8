// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

std::string questionOf(const Problem& problem) {
    EXPECT_EQ(problem.messages.size(), 1U);
    EXPECT_EQ(problem.messages.front().role(), "user");
    return problem.messages.front().text();
}

TEST(TaskProblems, NoQuestionIsInBothSetsAndBothHaveSome) {
    for (const Task& task : tasks()) {
        for (std::int64_t difficulty = 1; difficulty <= task.mostDifficulty; ++difficulty) {
            const auto source = taskProblems(task, difficulty, 11);
            std::set<std::string> evaluation, training;
            for (std::int64_t number = 0; number < source->evaluations(); ++number) {
                evaluation.insert(questionOf(source->evaluation(number)));
            }
            EXPECT_EQ(static_cast<std::int64_t>(evaluation.size()), source->evaluations()) << "some are the same";
            EXPECT_GE(evaluation.size(), 8U) << task.name << " " << difficulty;
            EXPECT_LE(evaluation.size(), 512U);
            for (std::int64_t number = 0; number < 300; ++number) {
                training.insert(questionOf(source->training(number)));
            }
            EXPECT_GE(training.size(), 20U) << task.name << " " << difficulty;
            for (const std::string& question : training) {
                EXPECT_FALSE(evaluation.contains(question)) << question;
            }
        }
    }
}

TEST(TaskProblems, AreFunctionsOfTheirNumbers) {
    const Task& task = *findTask("sums");
    const auto source = taskProblems(task, 5, 1), same = taskProblems(task, 5, 1), other = taskProblems(task, 5, 2);
    EXPECT_EQ(questionOf(source->training(1'000'000'007)), questionOf(same->training(1'000'000'007)));
    EXPECT_EQ(questionOf(source->training(3)), questionOf(source->training(3)));
    EXPECT_NE(questionOf(source->training(3)), questionOf(other->training(3)));
    EXPECT_EQ(questionOf(source->evaluation(3)), questionOf(other->evaluation(3))) << "all seeds have the same";
    EXPECT_EQ(source->training(17).name, "sums 17");
    EXPECT_EQ(source->evaluation(2).name, "sums evaluation 2");
    EXPECT_EQ(source->digest(), same->digest());
    EXPECT_NE(source->digest(), other->digest());
    EXPECT_NE(source->digest(), taskProblems(task, 6, 1)->digest());
    EXPECT_EQ(source->digest().size(), 64U);
}

TEST(TaskProblems, JudgeByTheTask) {
    const auto source = taskProblems(*findTask("sums"), 3, 1);
    const Problem problem = source->training(0);
    EXPECT_TRUE(source->judges());
    EXPECT_EQ(source->reward(problem, problem.facts->at("answer").dump()), 1);
    EXPECT_LT(source->reward(problem, "-1"), 1);
}

/// A task with few questions, all with the same hashes wherever this runs.
template <std::int64_t Count> TaskProblem makeFew(std::int64_t /*difficulty*/, ProblemDraws& draws) {
    return {"few " + std::to_string(draws.between(1, Count)),
            std::make_shared<const nlohmann::json>(nlohmann::json::object())};
}

TEST(TaskProblems, BothSetsHaveSomeOfFewQuestions) {
    const auto check = +[](const nlohmann::json&, std::string_view) { return 0.0; };
    const auto two = taskProblems({"few", "few", 1, makeFew<2>, check}, 1, 1);
    EXPECT_EQ(two->evaluations(), 1);
    EXPECT_NE(questionOf(two->training(0)), questionOf(two->evaluation(0)));
    const auto nine = taskProblems({"few", "few", 1, makeFew<9>, check}, 1, 1);
    EXPECT_EQ(nine->evaluations(), 4);
    const auto one = taskProblems({"few", "few", 1, makeFew<1>, check}, 1, 1);
    EXPECT_EQ(one->evaluations(), 0);
    EXPECT_EQ(questionOf(one->training(0)), "few 1");
}

TEST(TaskProblems, ADifficultyThatATaskDoesNotHaveIsNamed) {
    for (const std::int64_t difficulty : {std::int64_t{0}, std::int64_t{11}, std::int64_t{-1}}) {
        try {
            taskProblems(*findTask("brackets"), difficulty, 1);
            ADD_FAILURE();
        } catch (const base::BadInput& error) {
            EXPECT_EQ(error.message(),
                      "difficulty: the task brackets has the difficulties 1 to 10, not " + std::to_string(difficulty));
        }
    }
}

} // namespace
} // namespace vitrine::engine

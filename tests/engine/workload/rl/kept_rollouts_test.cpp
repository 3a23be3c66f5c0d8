// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/kept_rollouts.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "base/resource_path.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {
namespace {

std::int64_t keptOf(const KeptSteps& kept, std::int64_t steps) {
    std::int64_t count = 0;
    for (std::int64_t number = 1; number <= steps; ++number) {
        count += kept.tokens(number) ? 1 : 0;
    }
    return count;
}

TEST(KeptSteps, NoRunKeepsTheTokensOfMoreThan64) {
    for (const std::int64_t steps : {1, 20, 63, 64, 65, 100, 200, 400, 1000, 9999, 100000}) {
        for (const std::int64_t evalEvery : {0, 1, 7, 10, 100}) {
            const std::int64_t count = keptOf(KeptSteps(steps, evalEvery, 1024), steps);
            EXPECT_LT(count, KeptSteps::kMost + (steps <= KeptSteps::kMost ? 1 : 0)) << steps << ", " << evalEvery;
            EXPECT_GE(count, std::min<std::int64_t>(steps, 30)) << steps << ", " << evalEvery;
        }
    }
}

TEST(KeptSteps, TheFirstStepsAndThoseWithAnEvaluationAreAmongThem) {
    const KeptSteps kept(400, 20, 64);
    for (const std::int64_t number : {1, 2, 3, 20, 40, 380, 400}) {
        EXPECT_TRUE(kept.tokens(number)) << number;
    }
    EXPECT_FALSE(kept.tokens(5));
    std::int64_t last = 0;
    for (std::int64_t number = 1; number <= 400; ++number) {
        if (kept.tokens(number)) {
            EXPECT_LE(number - last, 10) << "they are spread evenly";
            last = number;
        }
    }
}

TEST(KeptSteps, RewardsOfAllAnswersAreKeptUntilTheyAreHalfAMillion) {
    EXPECT_TRUE(KeptSteps(400, 0, 1024).answers(5));
    const KeptSteps kept(100000, 0, 1024);
    std::int64_t answers = 0;
    for (std::int64_t number = 1; number <= 100000; ++number) {
        answers += kept.answers(number) ? 1024 : 0;
    }
    EXPECT_LT(answers, 700000);
}

TEST(RowsOfWholeGroups, AGroupIsKeptAsAWhole) {
    Rollouts rollouts;
    rollouts.rows = 5;
    rollouts.lengths = {10, 10, 10, 10, 10};
    const std::vector<std::pair<std::size_t, std::size_t>> places{{0, 0}, {0, 1}, {2, 0}, {2, 1}, {2, 2}};
    EXPECT_EQ(rowsOfWholeGroups(rollouts, places, 50), 5);
    EXPECT_EQ(rowsOfWholeGroups(rollouts, places, 45), 2) << "not four of five rows";
    EXPECT_EQ(rowsOfWholeGroups(rollouts, places, 15), 1) << "the first group is larger";
    EXPECT_EQ(rowsOfWholeGroups(rollouts, places, 5), 0);
}

TEST(QuestionTexts, WhatAChatTemplateWritesHasNoText) {
    const auto tokenizer = Tokenizer::load(base::resourcePath("models/vitrine-demo/tokenizer.json"));
    const std::string question = "Sort these numbers: 7 3 5";
    const auto said = [&](const std::string& prompt, const std::string& asked) {
        std::string out;
        for (const std::string& text : questionTexts(*tokenizer, tokenizer->encode(prompt, false), asked)) {
            out += text;
        }
        return out;
    };
    EXPECT_EQ(said("system\nBe brief.\nuser\n" + question + "\nassistant\n", question + "\n"), question);
    EXPECT_EQ(said(question, question), question);
    // What the template writes in another way is shown whole.
    EXPECT_EQ(said("user: " + question, "Other words"), "user: " + question);
    EXPECT_EQ(said("user: " + question, ""), "user: " + question);
}

TEST(AskedText, IsTheLastMessage) {
    Problem problem;
    problem.text = "plain";
    EXPECT_EQ(askedText(problem), "plain");
    problem.messages = {ChatMessage("system", "Be brief."), ChatMessage("user", "2+2?")};
    EXPECT_EQ(askedText(problem), "2+2?");
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

/// An answer that meets all demands.
std::string metAnswer(const nlohmann::json& facts) {
    std::vector<std::string> words;
    if (facts.contains("begin_word")) {
        words.push_back(facts["begin_word"]);
    }
    if (facts.contains("contains")) {
        words.push_back(facts["contains"]);
    }
    const std::size_t count = facts.value("words", std::size_t{4});
    const std::size_t last = facts.contains("end_word") ? 1 : 0;
    words.resize(count - last, "so");
    if (last == 1) {
        words.push_back(facts["end_word"]);
    }
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : " ") + word;
    }
    return out + facts.value("end_mark", "");
}

TEST(FormatTask, AllDemandsCanBeMetTogether) {
    test::forDrawnProblems(*findTask("format"), 300, [](std::int64_t difficulty, const TaskProblem& problem) {
        const std::string answer = metAnswer(*problem.facts);
        EXPECT_EQ(test::rewardOf("format", *problem.facts, answer), 1) << problem.question << "\n" << answer;
        EXPECT_EQ(test::rewardOf("format", *problem.facts, " " + answer + "\n"), 1);
        EXPECT_EQ(test::rewardOf("format", *problem.facts, "..."), 0) << "has no letter";
        EXPECT_LT(test::rewardOf("format", *problem.facts, "JQVXZBFKLPW,"), 1) << problem.question;
        EXPECT_EQ(problem.facts->size(), difficulty <= 2 ? 1U : problem.facts->size());
    });
}

TEST(FormatTask, EachDemandIsWorthItsShare) {
    const nlohmann::json facts = {{"end_mark", "!"}, {"contains", "the"}, {"lower", true},    {"begin_word", "once"},
                                  {"words", 5},      {"without", "z"},    {"end_word", "day"}};
    EXPECT_EQ(test::rewardOf("format", facts, "once it was the day!"), 1);
    EXPECT_DOUBLE_EQ(test::rewardOf("format", facts, "Once it was the day!"), 6.0 / 7) << "a capital letter";
    EXPECT_DOUBLE_EQ(test::rewardOf("format", facts, "once it was the day."), 6.0 / 7);
    EXPECT_DOUBLE_EQ(test::rewardOf("format", facts, "once it was other day!"), 6.0 / 7);
    EXPECT_DOUBLE_EQ(test::rewardOf("format", facts, "once it was the the day!"), 6.0 / 7);
    EXPECT_DOUBLE_EQ(test::rewardOf("format", facts, "once z was the day!"), 6.0 / 7);
    EXPECT_DOUBLE_EQ(test::rewardOf("format", facts, "once it was the night!"), 6.0 / 7);
    EXPECT_DOUBLE_EQ(test::rewardOf("format", facts, "here it was the day!"), 6.0 / 7);
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/answer_words.h"

#include <gtest/gtest.h>
#include <string>

#include "engine/workload/experiment/run_comparison.h"

namespace vitrine::engine {
namespace {

ComparedRun answered(const std::string& metrics, const std::string& environment = "{}") {
    return {1, R"({"workload":"generate"})", environment, metrics, true, false};
}

std::string said(const std::string& a, const std::string& b) {
    return answerSentence(answered(a), answered(b));
}

TEST(AnswerWords, SaysFromWhichTokenOnAnswersDiffer) {
    EXPECT_EQ(said(R"({"ids":[5,6,7]})", R"({"ids":[5,6,7]})"), "The answers are the same: 3 tokens.");
    EXPECT_EQ(said(R"({"ids":[5,6,7,8]})", R"({"ids":[5,6,9,8]})"),
              "The answers differ from token 3 on, of 4; before it they are the same.");
    EXPECT_EQ(said(R"({"ids":[4,6]})", R"({"ids":[5,6]})"), "The answers differ from the first token on.");
    EXPECT_EQ(said(R"({"ids":[5,6,7]})", R"({"ids":[5,6]})"),
              "The answers are the same up to token 2, where that of B ends; that of A has 3 tokens.");
}

TEST(AnswerWords, CountsTheAnswersOfSeveralPrompts) {
    const std::string a = R"({"ids":[1],"requests":[{"ids":[1]},{"ids":[2,3]},{"ids":[4]}]})";
    const std::string b = R"({"ids":[1],"requests":[{"ids":[1]},{"ids":[2,5]},{"ids":[4]}]})";
    EXPECT_EQ(said(a, a), "All 3 answers are the same: 4 tokens.");
    EXPECT_EQ(said(a, b), "2 of 3 answers are the same; the first that differs is answer 2, from token 2 on.");
}

TEST(AnswerWords, SaysNothingOfAnswersThatWereNotGiven) {
    EXPECT_EQ(said(R"({"peak_bytes":1})", R"({"ids":[1]})"), "");
    EXPECT_EQ(said(R"({"ids":[]})", R"({"ids":[]})"), "");
    EXPECT_EQ(said(R"({"requests":8})", R"({"requests":8})"), "") << "a batch counts its requests";
    const ComparedRun planned = answered(R"({"ids":[0,0]})", R"({"time_base":"virtual"})");
    EXPECT_EQ(answerSentence(planned, planned), "");
}

} // namespace
} // namespace vitrine::engine

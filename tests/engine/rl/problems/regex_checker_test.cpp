// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

TEST(RegexChecker, APatternIsFoundAnywhere) {
    EXPECT_EQ(test::judged("regex", "4[0-9]", "it is 42."), 1);
    EXPECT_EQ(test::judged("regex", "^4[0-9]", "it is 42."), 0);
    EXPECT_EQ(test::judged("regex", "(?i)PARIS", "paris"), 1);
    EXPECT_EQ(test::judged("regex", "(?m)^Answer: 5$", "well\nAnswer: 5\nbye"), 1);
    EXPECT_EQ(test::judged("regex", "(?s)<think>.*</think>.*42", "<think>\n\n</think>\n42"), 1);
    EXPECT_EQ(test::judged("regex", "^.$", "\xC3\xBC"), 1) << "a character is not a byte";
    EXPECT_EQ(test::judged("regex", "x$", "\xFF\xFE x"), 1) << "invalid UTF-8 does not end the search";
    EXPECT_EQ(test::judged("regex", "b", std::string("a\0b", 3)), 1);
}

TEST(RegexChecker, LongAnswersAreSearchedAtTheirEnd) {
    std::string answer(std::size_t{1} << 20, 'a');
    EXPECT_EQ(test::judged("regex", "b", "b" + answer), 0);
    EXPECT_EQ(test::judged("regex", "b$", answer + "b"), 1);
    EXPECT_EQ(test::judged("regex", "^a+b", answer + "b"), 0) << "the search begins inside of the answer";
    EXPECT_EQ(test::judged("regex", "<b>[\\s\\S]*</b>$", answer + "<b>" + answer.substr(0, 60'000) + "</b>"), 1);
}

TEST(RegexChecker, NoPatternTakesLong) {
    const std::string answer(std::size_t{1} << 20, 'a');
    const auto begin = std::chrono::steady_clock::now();
    // A class at the end: for a letter that the answer does not have the matcher would not even begin.
    for (const char* pattern :
         {"(a+)+[bc]", "(a*)*[bc]", "(a|aa)+[bc]", "(a|a)*[bc]", "a*a*a*a*a*[bc]", "[\\s\\S]*+[bc]", "a++[bc]",
          "(?:a?){50}a{50}[bc]", "(?=(a+))[bc]", "(?<=a)+[bc]", "(a(?1)?)[bc]", ".*.*.*=.*[bc]", "(?:.*,){12}[bc]",
          "a{60000}[bc]", "(?>a+)[bc]", "\\X*[bc]", "(*NO_START_OPT)a+[bc]", "(?:a{1,50}){1,50}[bc]"}) {
        EXPECT_EQ(test::answerError("regex", pattern), "") << pattern;
        EXPECT_EQ(test::judged("regex", pattern, answer), 0) << pattern;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(RegexChecker, PatternsThatCannotBeUsedAreNamed) {
    EXPECT_EQ(test::answerError("regex", "(a"),
              "answer: is no regular expression: missing closing parenthesis at character 3");
    EXPECT_EQ(test::answerError("regex", "(a)\\1"),
              "answer: the pattern refers back to a group, which can take very long; write it without");
    EXPECT_EQ(test::answerError("regex", "(?<n>a)\\k<n>"),
              "answer: the pattern refers back to a group, which can take very long; write it without");
    EXPECT_EQ(test::answerError("regex", 5), "answer: must be a regular expression as text, not number");
    EXPECT_EQ(test::answerError("regex", ""), "answer: is empty, which all answers match; give a regular expression");
    EXPECT_EQ(test::answerError("regex", std::string(4001, 'a')),
              "answer: the pattern has 4001 bytes, and 4000 at most are read; shorten it");
    EXPECT_NE(test::answerError("regex", "((((a{1,200}){1,200}){1,200}){1,200}"), "");
    EXPECT_NE(test::answerError("regex", "\\C"), "");
}

} // namespace
} // namespace vitrine::engine

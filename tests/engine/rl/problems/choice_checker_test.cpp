// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

TEST(ChoiceChecker, StatedChoicesAreRead) {
    for (const char* text : {"Answer: B",
                             "answer: B",
                             "The answer is B.",
                             "The answer is: (B)",
                             "Answer: **B**",
                             "**Answer:** B",
                             "ANSWER: B",
                             "\\boxed{B}",
                             "\\boxed{\\text{B}}",
                             "\\boxed{(B)}",
                             "Answer: $\\boxed{B}$",
                             "(B)",
                             "(A) is wrong, so (B)",
                             "First Answer: A. No. Answer: B",
                             "Answer: B because (C) is wrong",
                             "\\boxed{A}, no, \\boxed{B}",
                             "B",
                             " B. Paris",
                             "B) Paris",
                             "**B**",
                             "Answer:\nB"}) {
        EXPECT_EQ(test::judged("choice", "B", text), 1) << text;
        EXPECT_EQ(test::judged("choice", "(b)", text), 1) << text;
        EXPECT_EQ(test::judged("choice", "C", text), 0) << text;
    }
}

TEST(ChoiceChecker, OtherTextsStateNone) {
    for (const char* text : {"", "A cat", "All", "Answer: Apples", "answering A", "\\boxed{AB}", "F", "(F)", "Because",
                             "a", "the answer"}) {
        for (const char* letter : {"A", "B", "C", "D", "E"}) {
            EXPECT_EQ(test::judged("choice", letter, text), 0) << text;
        }
    }
}

TEST(ChoiceChecker, ARowMustHaveALetter) {
    EXPECT_EQ(test::answerError("choice", "E."), "");
    EXPECT_EQ(test::answerError("choice", "F"), "answer: must be one of the letters A to E, not \"F\"");
    EXPECT_EQ(test::answerError("choice", 1), "answer: must be one of the letters A to E, not \"1\"");
    EXPECT_EQ(test::answerError("choice", "("), "answer: must be one of the letters A to E, not \"(\"");
}

} // namespace
} // namespace vitrine::engine

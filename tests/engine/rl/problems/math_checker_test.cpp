// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/engine/rl/problems/problems_testing.h"

namespace vitrine::engine {
namespace {

struct MathCase {
    nlohmann::json expected;
    std::string answer;
};

TEST(MathChecker, AnswersAreFound) {
    const MathCase cases[] = {
        {"34", "\\boxed{34}"},
        {34, "The answer is \\boxed{34}."},
        {"34", "\\boxed{12} is wrong. \\boxed{34}"},
        {"34", "\\boxed{34} and \\boxed{12"},
        {"34", "} \\boxed {34} {"},
        {"34", "\\boxed{\\boxed{34}}"},
        {"34", "$\\boxed{34}$ of 100"},
        {"\\frac{1}{2}", "\\boxed{\\frac{1}{2}}"},
        {"34", "Steps 1, 2, 3.\nAnswer: 34"},
        {"34", "**Answer:** 34"},
        {"34", "Answer: $34$"},
        {"34", "Answer: \\(34\\)."},
        {"34", "answer:\n34\nbye 5"},
        {"34", "Answer: 34 apples"},
        {"34", "Final Answer: The final answer is $34$. I hope it is correct."},
        {"34", "It is 34"},
        {"34", "7 + 27 = 34."},
        {"1/2", "so we get 1/2"},
        {"1/2", "so we get 1 / 2."},
        {"1/2", "so we get $\\frac{1}{2}$."},
        {"-1/2", "so we get $-\\dfrac{1}{2}$."},
        {"-1/2", "so we get -1/2"},
        {"1/2", "1/2"},
        {"\\sqrt{2}", "$\\sqrt{2}$"},
        {"The area is \\boxed{12}", "12"},
        {"2 + 40 = 42\n#### 42", "\\boxed{42}"},
    };
    for (const MathCase& entry : cases) {
        EXPECT_EQ(test::judged("math", entry.expected, entry.answer), 1) << entry.expected << " | " << entry.answer;
    }
}

TEST(MathChecker, EqualForms) {
    const MathCase cases[] = {
        {"0.5", "\\frac{1}{2}"},
        {"\\frac{1}{2}", "\\dfrac{1}{2}"},
        {"\\frac{1}{2}", "\\tfrac12"},
        {"3/2", "1\\frac{1}{2}"},
        {"3/2", "1.50"},
        {"1000", "1,000"},
        {"1000", "1{,}000"},
        {"10000", "10\\,000"},
        {"1,000", "1000.0"},
        {"-5", "\xE2\x88\x92"
               "5"},
        {"-5", "-5.0"},
        {"50", "50\\%"},
        {"50\\%", "50%"},
        {"5", "\\$5"},
        {"90", "90^\\circ"},
        {"90^{\\circ}", "90\xC2\xB0"},
        {"90", "90\\text{ degrees}"},
        {"12", "12 \\text{ cm}^2"},
        {"12", "12\\,\\mathrm{cm}"},
        {"12", "12 square units"},
        {"12", "12 cm^{2}"},
        {"5", "x = 5"},
        {"x=5", "5"},
        {"f(2)=5", "5"},
        {"{1,2}", "\\{2, 1\\}"},
        {"1, 2", "2,1"},
        {"1,2", "2 \\text{ and } 1"},
        {"x=1,x=2", "2,1"},
        {"\\{\\frac12, 3\\}", "3, 0.5"},
        {"(1,2)", "\\left(1, 2\\right)"},
        {"(1,234)", "(1, 234)"},
        {"(-\\infty, 3]", "(-\xE2\x88\x9E,3]"},
        {"[0,1)\\cup(2,3]", "(2,3] \\cup [0,1)"},
        {"\\text{Monday}", "monday"},
        {"(A)", "A"},
        {"\\text{(A)}", "A"},
        {"2\\sqrt{3}", "2\\sqrt3"},
        {"2\\sqrt{3}", "2 \\cdot \\sqrt{3}"},
        {"\\frac{\\pi}{2}", "\\pi/2"},
        {"-\\frac{\\sqrt{3}}{2}", "-\\sqrt{3}/2"},
        {"x^2+1", "x^{2} + 1"},
        {"x \\leq 5", "x\\le5"},
        {"(5)", "5"},
        {"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"},
        {"034", "34"},
        {"\\frac{a}{b}", "\\dfrac{a}{b}"},
        {"170141183460469231731687303715884105728", "170141183460469231731687303715884105728"},
    };
    for (const MathCase& entry : cases) {
        const std::string boxed = "so \\boxed{" + entry.answer + "}";
        EXPECT_EQ(test::judged("math", entry.expected, boxed), 1) << entry.expected << " | " << boxed;
        const std::string swapped = "\\boxed{" + entry.expected.get<std::string>() + "}";
        EXPECT_EQ(test::judged("math", entry.answer, swapped), 1) << entry.answer << " | " << swapped;
    }
}

TEST(MathChecker, OtherAnswersAreWrong) {
    const MathCase cases[] = {
        {"34", "\\boxed{35}"},
        {"34", "34, so \\boxed{35}"},
        {"34", "\\boxed{}34"},
        {"2", "1/2"},
        {"2", "so 1/2"},
        {"2", "so $\\frac{1}{2}$"},
        {"3", "Answer: 2\\sqrt{3}"},
        {"3", "Answer: 2x3"},
        {"3", "Answer: 2 or 3"},
        {"0.5", "\\boxed{50\\%}"},
        {"(1,2)", "\\boxed{(2,1)}"},
        {"(1,2)", "\\boxed{[1,2]}"},
        {"(1,2)", "\\boxed{\\{1,2\\}}"},
        {"(1,234)", "\\boxed{1234}"},
        {"{1,2}", "\\boxed{1}"},
        {"{1,2}", "\\boxed{1,2,2}"},
        {"1/3", "\\boxed{0.333333}"},
        {"A", "\\boxed{a}"},
        {"12", "\\boxed{12x}"},
        {"170141183460469231731687303715884105728", "\\boxed{170141183460469231731687303715884105729}"},
        {"34", ""},
        {"34", "none"},
        {"34", "\\boxed{"},
    };
    for (const MathCase& entry : cases) {
        EXPECT_EQ(test::judged("math", entry.expected, entry.answer), 0) << entry.expected << " | " << entry.answer;
    }
}

TEST(MathChecker, LongAnswersAreComparedAsTheyAre) {
    const std::string text(5000, 'x');
    EXPECT_EQ(test::judged("math", text, "\\boxed{ " + text + " }"), 1);
    EXPECT_EQ(test::judged("math", text, "\\boxed{" + text + "x}"), 0);
    EXPECT_EQ(test::judged("math", "5", "Answer: " + text + " 5"), 0);
    EXPECT_EQ(test::judged("math", "5", text + " 5"), 1);
}

TEST(MathChecker, AnswersThatSayNothingAreRefused) {
    for (const char* answer : {"", " ", "$$", "\\boxed{}", "####"}) {
        EXPECT_EQ(test::answerError("math", answer), "answer: says nothing; give a number or LaTeX, or remove the row")
            << answer;
    }
}

} // namespace
} // namespace vitrine::engine

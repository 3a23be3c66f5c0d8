// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/answer_number.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>

namespace vitrine::engine {
namespace {

TEST(AnswerNumber, TheLastNumberIsRead) {
    const std::pair<const char*, double> cases[] = {
        {"42", 42},
        {"It is 42.", 42},
        {"12 + 7 + 30 = 49", 49},
        {"1,234,567.5 apples", 1234567.5},
        {"-7", -7},
        {"x = -7", -7},
        {"x=-7", -7},
        {"5-3", 3},
        {"5 -3", -3},
        {"f(x)-3", 3},
        {"\xE2\x88\x92"
         "2.5",
         -2.5},
        {"+3", 3},
        {"-0.5", -0.5},
        {"0", 0},
        {".5", 0.5},
        {"-.25", -0.25},
        {"50%", 50},
        {"$1,000", 1000},
        {"-$5", 5},
        {"1e3", 1000},
        {"2.5e-3", 0.0025},
        {"3eggs", 3},
        {"1e3x", 3},
        {"1,2", 2},
        {"1,2345", 2345},
        {"1234,567", 567},
        {"1,234,56", 56},
        {"10 of 20 are 10", 10},
        {"\\boxed{34}", 34},
    };
    for (const auto& [text, number] : cases) {
        const std::optional<double> read = lastNumber(text);
        ASSERT_TRUE(read) << text;
        EXPECT_DOUBLE_EQ(*read, number) << text;
    }
}

TEST(AnswerNumber, OtherTextsHaveNone) {
    for (const char* text : {"", "-", ".", "none", "-.", "1e999"}) {
        EXPECT_FALSE(lastNumber(text)) << text;
    }
    EXPECT_FALSE(lastNumber(std::string(1 << 20, '9'))) << "no double holds it";
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/exact_number.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace vitrine::engine {
namespace {

TEST(ExactNumber, NumbersAreInLowestTerms) {
    const std::pair<const char*, const char*> cases[] = {
        {"34", "34"},
        {"-34", "-34"},
        {"- 34", "-34"},
        {"+5", "5"},
        {"007", "7"},
        {"5.0", "5"},
        {"5.", "5"},
        {".5", "1/2"},
        {"-0.125", "-1/8"},
        {"0", "0"},
        {"-0", "0"},
        {"1,234", "1234"},
        {"1,234,567.50", "2469135/2"},
        {"\\frac{1}{2}", "1/2"},
        {"\\frac{2}{4}", "1/2"},
        {"-\\frac{2}{4}", "-1/2"},
        {"\\frac{-2}{4}", "-1/2"},
        {"\\frac{2}{-4}", "-1/2"},
        {"\\frac{-2}{-4}", "1/2"},
        {"\\frac12", "1/2"},
        {"\\frac1{72}", "1/72"},
        {"\\frac {1} {2}", "1/2"},
        {"\\frac{0.5}{2}", "1/4"},
        {"6/4", "3/2"},
        {"6 / 4", "3/2"},
        {"6/-4", "-3/2"},
        {"1\\frac{1}{2}", "3/2"},
        {"-1\\frac{1}{2}", "-3/2"},
        {"1 \\frac12", "3/2"},
        {"1 1/2", "3/2"},
        {"170141183460469231731687303715884105727", "170141183460469231731687303715884105727"},
    };
    for (const auto& [text, number] : cases) {
        EXPECT_EQ(exactNumber(text), std::string(number)) << text;
    }
}

TEST(ExactNumber, EverythingElseIsNone) {
    for (const char* text : {"",
                             " ",
                             "-",
                             "x",
                             "5x",
                             "1 2",
                             "1/0",
                             "\\frac{1}{0}",
                             "\\frac{1}",
                             "\\frac{1}{x}",
                             "\\frac",
                             "1.2.3",
                             "1,23",
                             "1234,567",
                             "1,2345",
                             "1.5 1/2",
                             "1.5\\frac{1}{2}",
                             "1/2/3",
                             "--1",
                             "1 1/0",
                             "1\\frac{-1}{2}",
                             "1e5",
                             "170141183460469231731687303715884105728",
                             "0.00000000000000000000000000000000000000001",
                             "99999999999999999999999999999999999999/0.0001"}) {
        EXPECT_EQ(exactNumber(text), std::nullopt) << text;
    }
}

} // namespace
} // namespace vitrine::engine

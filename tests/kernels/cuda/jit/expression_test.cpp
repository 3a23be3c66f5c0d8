// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/expression.h"

#include <gtest/gtest.h>
#include <random>

#include "base/error.h"
#include "tests/repetitions.h"

namespace vitrine::kernels {
namespace {

std::optional<std::int64_t> lookup(std::string_view name) {
    if (name == "dim") {
        return 2880;
    }
    if (name == "rows") {
        return 7;
    }
    return std::nullopt;
}

std::int64_t value(std::string_view text) {
    return Expression::parse(text).evaluate(lookup);
}

TEST(Expression, Arithmetic) {
    EXPECT_EQ(value("1 + 2 * 3"), 7);
    EXPECT_EQ(value("(1 + 2) * 3"), 9);
    EXPECT_EQ(value("10 - 4 - 3"), 3);
    EXPECT_EQ(value("-7 / 2"), -3);
    EXPECT_EQ(value("-7 % 2"), -1);
    EXPECT_EQ(value("- - 3"), 3);
    EXPECT_EQ(value("ceil_div(dim, 64)"), 45);
    EXPECT_EQ(value("ceil_div(7, 2) + ceil_div(-7, 2) + ceil_div(8, 2)"), 4 - 3 + 4);
    EXPECT_EQ(value("min(rows, 4) * max(rows, 9)"), 36);
    EXPECT_EQ(value("9223372036854775807"), 9223372036854775807);
}

TEST(Expression, LogicIsLazy) {
    EXPECT_EQ(value("dim % 8 == 0 && rows >= 7 || 1 / 0"), 1);
    EXPECT_EQ(value("rows > 7 && 1 / 0"), 0);
    EXPECT_EQ(value("rows < 8 ? dim : nothing"), 2880);
    EXPECT_EQ(value("0 ? 1 : 0 ? 2 : 3"), 3);
    EXPECT_EQ(value("!rows + !0"), 1);
    EXPECT_EQ(value("BF16 == 3 && F32 == 2 && F16 == 4 && U8 == 9 && F8_E4M3 == 14"), 1);
    EXPECT_EQ(value("DENSE == 0 && MXFP4 == 1 && NF4 == 2 && INT4 == 3 && INT8 == 4 && FP8 == 5"), 1);
    EXPECT_EQ(value("1 <= 1 != 2"), 1);
}

TEST(Expression, NamesInOrder) {
    EXPECT_EQ(Expression::parse("rows * (dim + rows) + BF16").names(), (std::vector<std::string>{"rows", "dim"}));
    EXPECT_EQ(Expression().evaluate(lookup), 0);
}

std::string errorOf(std::string_view text) {
    try {
        value(text);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return "";
}

TEST(Expression, ErrorsSayWhereAndWhat) {
    EXPECT_EQ(errorOf("1 +"), "column 4: the expression ends too early");
    EXPECT_EQ(errorOf("1 2"), "column 3: unexpected '2'");
    EXPECT_EQ(errorOf("(1"), "column 3: ')' is expected");
    EXPECT_EQ(errorOf("sin(1)"), "column 5: there is no function 'sin'; use min, max or ceil_div");
    EXPECT_EQ(errorOf("3x"), "column 2: a number is followed by a letter");
    EXPECT_EQ(errorOf("nothing"), "there is no variable 'nothing'");
    EXPECT_EQ(errorOf("1 / (rows - 7)"), "division by zero");
    EXPECT_EQ(errorOf("9223372036854775807 + 1"), "a value does not fit 64 bits");
    EXPECT_EQ(errorOf("(0 - 9223372036854775807 - 1) / -1"), "a value does not fit 64 bits");
    EXPECT_NE(errorOf("9223372036854775808"), "");
    EXPECT_NE(errorOf(""), "");
    EXPECT_NE(errorOf("1 & 2"), "");
    EXPECT_NE(errorOf("1 = 2"), "");
    EXPECT_NE(errorOf(std::string(100, '(')), "");
    EXPECT_NE(errorOf(std::string(100, '!') + "1"), "");
    EXPECT_NE(errorOf(std::string(5000, '1')), "");
}

// Whatever the text: a value or BadInput, never a crash.
TEST(Expression, AnyTextIsAnsweredOrRefused) {
    std::mt19937 random(7);
    const std::string alphabet = "0123456789 ()+-*/%<>=!&|?:,abdimrowsminmaxceil_";
    int answered = 0;
    for (int round = 0; round < vitrine::test::repetitions(20000); ++round) {
        std::string text;
        const std::size_t length = random() % 24;
        for (std::size_t i = 0; i < length; ++i) {
            text.push_back(alphabet[random() % alphabet.size()]);
        }
        try {
            value(text);
            ++answered;
        } catch (const base::BadInput&) {
        }
    }
    EXPECT_GT(answered, vitrine::test::moreThan(100));
}

/// A random expression and its value by the machine's own arithmetic; small numbers keep it in range.
struct Made {
    std::string text;
    std::int64_t value;
};
Made make(std::mt19937& random, int depth) {
    if (depth == 0) {
        const auto number = static_cast<std::int64_t>(random() % 20);
        return {std::to_string(number), number};
    }
    const Made a = make(random, depth - 1);
    const Made b = make(random, depth - 1);
    switch (random() % 8) {
    case 0:
        return {"(" + a.text + " + " + b.text + ")", a.value + b.value};
    case 1:
        return {"(" + a.text + "-" + b.text + ")", a.value - b.value};
    case 2:
        return {"(" + a.text + "*" + b.text + ")", a.value * b.value};
    case 3:
        return b.value == 0 ? a : Made{"(" + a.text + "/" + b.text + ")", a.value / b.value};
    case 4:
        return {"(" + a.text + " < " + b.text + ")", a.value < b.value ? 1 : 0};
    case 5:
        return {"min(" + a.text + ", " + b.text + ")", std::min(a.value, b.value)};
    case 6:
        return {"(" + a.text + " ? " + b.text + " : 5)", a.value != 0 ? b.value : 5};
    default:
        return {"(-" + a.text + " != " + b.text + ")", -a.value != b.value ? 1 : 0};
    }
}

TEST(Expression, AgreesWithTheMachine) {
    std::mt19937 random(11);
    for (int round = 0; round < 2000; ++round) {
        const Made made = make(random, 1 + round % 4);
        EXPECT_EQ(value(made.text), made.value) << made.text;
    }
}

} // namespace
} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/interpreter.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/program/emitter.h"
#include "kernels/program/scalar_math.h"
#include "tests/kernels/program/program_testing.h"

namespace vitrine::kernels {
namespace {

using testing::Captures;
using testing::Expr;
using testing::Maker;
using testing::where;

TEST(Interpreter, SlidingWindowOverManyKeys) {
    const Program program = slidingWindowMask(17);
    const CaptureBinding none;
    Interpreter<float> interpreter(program, none);
    for (const std::int64_t query : {0, 5, 300, 511}) {
        for (std::int64_t key = 0; key < 512; key += kInterpreterWidth) {
            interpreter.run({0, 0, query}, key, kInterpreterWidth, nullptr);
            for (std::int64_t i = 0; i < kInterpreterWidth; ++i) {
                const std::int64_t k = key + i;
                EXPECT_EQ(interpreter.booleans()[i] != 0, k <= query && query - k < 17) << query << " " << k;
            }
        }
    }
}

TEST(Interpreter, LoadsWrapNegativeIndicesAndClampTheRest) {
    Maker m;
    const Program program = m.finish(m.load("table", ProgramType::Int32, {m.q - m.k}));
    Captures captures;
    captures.add(std::vector<std::int32_t>{10, 11, 12, 13}, Shape{4});
    Interpreter<float> interpreter(program, captures.binding);
    interpreter.run({0, 0, 3}, 0, 10, nullptr);
    // Indices 3 .. -6.
    const std::vector<std::int64_t> expected{13, 12, 11, 10, 13, 12, 11, 10, 10, 10};
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), interpreter.integers()));
    interpreter.run({0, 0, 40}, 0, 2, nullptr);
    EXPECT_EQ(interpreter.integers()[0], 13);
}

TEST(Interpreter, LoadsOfEveryDtypeAndRowStrides) {
    std::vector<double> values;
    const auto check = [&](DType dtype, ProgramType type, std::int64_t rowStride) {
        Maker m;
        const Program program = m.finish(m.load("x", type, {m.h, m.k}));
        std::vector<std::byte> memory(512);
        const TensorView view{memory.data(), dtype, Shape{2, 3}, {rowStride}};
        for (int h = 0; h < 2; ++h) {
            for (int k = 0; k < 3; ++k) {
                const std::int64_t offset = h * view.stride0() + k;
                const double value = h * 3 + k;
                switch (dtype) {
                case DType::I8:
                case DType::U8:
                    view.as<std::uint8_t>()[offset] = static_cast<std::uint8_t>(value);
                    break;
                case DType::I16:
                    view.as<std::int16_t>()[offset] = static_cast<std::int16_t>(value);
                    break;
                case DType::I32:
                    view.as<std::int32_t>()[offset] = static_cast<std::int32_t>(value);
                    break;
                case DType::I64:
                    view.as<std::int64_t>()[offset] = static_cast<std::int64_t>(value);
                    break;
                case DType::Bool:
                    view.as<std::uint8_t>()[offset] = value != 0 ? 1 : 0;
                    break;
                default:
                    storeFloats(dtype, &value, 1, view.data, offset);
                }
            }
        }
        const CaptureBinding binding{{view}};
        Interpreter<double> interpreter(program, binding);
        interpreter.run({0, 1, 0}, 0, 3, nullptr);
        for (int k = 0; k < 3; ++k) {
            const double actual = type == ProgramType::Float  ? interpreter.floats()[k]
                                  : type == ProgramType::Bool ? interpreter.booleans()[k] * (3.0 + k)
                                                              : static_cast<double>(interpreter.integers()[k]);
            EXPECT_EQ(actual, 3 + k) << dtypeName(dtype);
        }
    };
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16}) {
        check(dtype, ProgramType::Float, 8);
    }
    for (const DType dtype : {DType::I32, DType::I16, DType::I8, DType::U8}) {
        check(dtype, ProgramType::Int32, 0);
    }
    check(DType::I64, ProgramType::Int64, 5);
    check(DType::Bool, ProgramType::Bool, 0);
}

TEST(Interpreter, AgreesWithPlainArithmetic) {
    Maker m;
    const Expr d = m.q - m.k;
    const Program program = m.finish(
        where((d % 3) == m.number(1), m.score * 2 + testing::floorDiv(d, 4), (m.score / 3).of(ProgramOp::Tanh)));
    const CaptureBinding none;
    Interpreter<double> interpreter(program, none);
    std::vector<double> scores(200);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        scores[i] = std::sin(static_cast<double>(i));
    }
    interpreter.run({1, 2, 90}, 10, 200, scores.data());
    for (std::int64_t i = 0; i < 200; ++i) {
        const std::int64_t distance = 90 - (10 + i);
        const double s = scores[static_cast<std::size_t>(i)];
        const double expected = scalar::mod<std::int64_t>(distance, 3) == 1
                                    ? s * 2 + static_cast<double>(scalar::floorDiv<std::int64_t>(distance, 4))
                                    : std::tanh(s / 3);
        EXPECT_DOUBLE_EQ(interpreter.floats()[i], expected);
    }
}

TEST(Interpreter, FloatAndDoubleAgreeOnRandomPrograms) {
    std::mt19937 random(5);
    for (int i = 0; i < 60; ++i) {
        testing::RandomProgram source(random, 64, 3);
        const Program program = source.score();
        const Captures captures = source.captures(program);
        Interpreter<float> narrow(program, captures.binding);
        Interpreter<double> wide(program, captures.binding);
        const std::vector<float> scores(64, 0.375F);
        const std::vector<double> same(64, 0.375);
        narrow.run({0, 1, 20}, 0, 64, scores.data());
        wide.run({0, 1, 20}, 0, 64, same.data());
        for (int k = 0; k < 64; ++k) {
            EXPECT_NEAR(narrow.floats()[k], wide.floats()[k], 2e-4 * (1 + std::fabs(wide.floats()[k])))
                << printProgram(program, "f");
        }
    }
}

TEST(Interpreter, RefusesMissingCaptures) {
    Maker m;
    const Program program = m.finish(m.load("table", ProgramType::Int32, {m.q}));
    const CaptureBinding none;
    EXPECT_THROW(Interpreter<float>(program, none), base::BadInput);
}

TEST(Explain, SaysWhichPartBlocks) {
    Maker m;
    const Expr same =
        m.load("document_id", ProgramType::Int32, {m.q}) == m.load("document_id", ProgramType::Int32, {m.k});
    const Program program = m.finish((m.q >= m.k) & same & ((m.q - m.k) <= 4));
    Captures captures;
    captures.add(std::vector<std::int32_t>{0, 0, 1, 1, 1}, Shape{5});
    const std::vector<ExplainedNode> parts = explain(program, captures.binding, {0, 0, 3}, 1, 0);
    ASSERT_GE(parts.size(), 4U);
    EXPECT_EQ(parts[0].value, "False");
    const auto part = [&](const std::string& text) {
        const auto found =
            std::find_if(parts.begin(), parts.end(), [&](const ExplainedNode& item) { return item.text == text; });
        EXPECT_NE(found, parts.end()) << text;
        return found == parts.end() ? ExplainedNode{} : *found;
    };
    EXPECT_EQ(part("q_idx >= kv_idx").value, "True");
    EXPECT_FALSE(part("q_idx >= kv_idx").decides);
    EXPECT_EQ(part("document_id[q_idx] == document_id[kv_idx]").value, "False");
    EXPECT_TRUE(part("document_id[q_idx] == document_id[kv_idx]").decides);
    EXPECT_EQ(part("document_id[q_idx] == document_id[kv_idx]").depth, 1);
    EXPECT_EQ(part("document_id[kv_idx]").value, "0");
    EXPECT_EQ(part("q_idx - kv_idx").value, "2");
}

TEST(Printer, LeastParentheses) {
    Maker m;
    const auto text = [&](const Expr& value) { return printNode(m.finish(value), m.finish(value).result); };
    EXPECT_EQ(text(m.q - m.k <= m.number(17)), "q_idx - kv_idx <= 17");
    EXPECT_EQ(text((m.q >= m.k) & ((m.q - m.k) < m.h)), "(q_idx >= kv_idx) & (q_idx - kv_idx < h)");
    EXPECT_EQ(text(m.q - (m.k - m.h)), "q_idx - (kv_idx - h)");
    EXPECT_EQ(text((m.q - m.k) * m.h % 4), "(q_idx - kv_idx) * h % 4");
    EXPECT_EQ(text(m.score + (m.q - m.k) * 0.01), "score + (q_idx - kv_idx) * 0.01");
    EXPECT_EQ(text((m.score / 50).of(ProgramOp::Tanh) * 50), "torch.tanh(score / 50.0) * 50.0");
    EXPECT_EQ(text(-(m.score + 1)), "-(score + 1.0)");
    EXPECT_EQ(printProgram(causalMask(), "causal"), "def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n");
}

TEST(Printer, LongProgramsStayShort) {
    Maker m;
    Expr value = m.score;
    for (int i = 0; i < 300; ++i) {
        value = value * value + m.score;
    }
    const Program program = m.finish(value);
    EXPECT_LT(printProgram(program, "f").size(), 40000U);
    EXPECT_LE(printNode(program, program.result).size(), 4000U);
}

} // namespace
} // namespace vitrine::kernels

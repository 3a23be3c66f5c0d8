// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/interval_analysis.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "kernels/program/emitter.h"
#include "kernels/program/interpreter.h"
#include "tests/kernels/program/program_testing.h"
#include "tests/repetitions.h"

namespace vitrine::kernels {
namespace {

using testing::Captures;
using testing::Expr;
using testing::floorDiv;
using testing::Maker;
using testing::where;

ProgramBox box(std::int64_t q0, std::int64_t q1, std::int64_t k0, std::int64_t k1) {
    return {0, 0, 0, 0, q0, q1, k0, k1};
}

MaskVerdict verdict(const Program& program, const ProgramBox& where, const CaptureBinding& binding = {}) {
    return IntervalAnalysis(program, binding).mask(where);
}

TEST(IntervalAnalysis, DecidesTheUsualMasksExactly) {
    const Program causal = causalMask();
    EXPECT_EQ(verdict(causal, box(128, 255, 0, 127)), MaskVerdict::Full);
    EXPECT_EQ(verdict(causal, box(128, 255, 0, 128)), MaskVerdict::Full);
    EXPECT_EQ(verdict(causal, box(128, 255, 0, 129)), MaskVerdict::Undecided);
    EXPECT_EQ(verdict(causal, box(0, 127, 128, 255)), MaskVerdict::Empty);
    const Program sliding = slidingWindowMask(64);
    EXPECT_EQ(verdict(sliding, box(100, 110, 60, 90)), MaskVerdict::Full);
    EXPECT_EQ(verdict(sliding, box(200, 255, 0, 136)), MaskVerdict::Empty);
    EXPECT_EQ(verdict(sliding, box(200, 255, 0, 137)), MaskVerdict::Undecided);
}

TEST(IntervalAnalysis, ModAndFloorDivAreTightInsideOnePeriod) {
    Maker m;
    const Program strided = m.finish((m.k % 64) < m.number(16));
    EXPECT_EQ(verdict(strided, box(0, 0, 128, 143)), MaskVerdict::Full);
    EXPECT_EQ(verdict(strided, box(0, 0, 144, 191)), MaskVerdict::Empty);
    EXPECT_EQ(verdict(strided, box(0, 0, 120, 143)), MaskVerdict::Undecided);
    Maker n;
    const Program chunked = n.finish(floorDiv(n.q, 50) == floorDiv(n.k, 50));
    EXPECT_EQ(verdict(chunked, box(50, 99, 50, 99)), MaskVerdict::Full);
    EXPECT_EQ(verdict(chunked, box(50, 99, 100, 149)), MaskVerdict::Empty);
}

TEST(IntervalAnalysis, CapturedTensorsEnterByTheirRanges) {
    Maker m;
    const Program same = m.finish(m.load("ids", ProgramType::Int32, {m.q}) == m.load("ids", ProgramType::Int32, {m.k}));
    for (const bool sorted : {true, false}) {
        std::vector<std::int32_t> ids(1000);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            ids[i] = static_cast<std::int32_t>(i / 100);
            ids[i] = sorted ? ids[i] : 9 - ids[i];
        }
        Captures captures;
        captures.add(ids, Shape{1000});
        EXPECT_EQ(verdict(same, box(100, 199, 100, 199), captures.binding), MaskVerdict::Full);
        EXPECT_EQ(verdict(same, box(100, 299, 300, 999), captures.binding), MaskVerdict::Empty);
        EXPECT_EQ(verdict(same, box(100, 200, 100, 200), captures.binding), MaskVerdict::Undecided);
    }
}

TEST(IntervalAnalysis, SelectFollowsItsCondition) {
    Maker m;
    const Program program = m.finish(where(m.q < m.number(10), m.k < m.number(5), m.k < m.number(50)));
    EXPECT_EQ(verdict(program, box(0, 9, 0, 4)), MaskVerdict::Full);
    EXPECT_EQ(verdict(program, box(10, 20, 5, 49)), MaskVerdict::Full);
    EXPECT_EQ(verdict(program, box(0, 9, 5, 49)), MaskVerdict::Empty);
    EXPECT_EQ(verdict(program, box(9, 10, 5, 49)), MaskVerdict::Undecided);
}

TEST(IntervalAnalysis, IntegersThatMayWrapAreUndecided) {
    Maker m;
    const Program program = m.finish(m.number(0) <= m.q * 100000 * 3);
    EXPECT_EQ(verdict(program, box(0, 7000, 0, 0)), MaskVerdict::Full);
    EXPECT_EQ(verdict(program, box(0, 8000, 0, 0)), MaskVerdict::Undecided);
}

TEST(IntervalAnalysis, SoundOnRandomPrograms) {
    std::mt19937 random(11);
    int decided = 0;
    const std::int64_t length = 96;
    for (int i = 0; i < vitrine::test::repetitions(400); ++i) {
        testing::RandomProgram source(random, length, 3);
        const Program program = source.mask();
        const Captures captures = source.captures(program);
        IntervalAnalysis analysis(program, captures.binding);
        std::vector<std::int32_t> all(program.nodes.size());
        for (std::size_t n = 0; n < all.size(); ++n) {
            all[n] = static_cast<std::int32_t>(n);
        }
        Interpreter<float> interpreter(program, captures.binding, all);
        for (int j = 0; j < 12; ++j) {
            const auto pick = [&](std::int64_t most) {
                return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
            };
            ProgramBox where = box(pick(length), 0, pick(length), 0);
            where.queryHigh = std::min(length - 1, where.queryLow + pick(20));
            where.keyHigh = std::min(length - 1, where.keyLow + pick(20));
            where.headLow = where.headHigh = pick(3);
            const MaskVerdict found = analysis.mask(where);
            decided += found != MaskVerdict::Undecided ? 1 : 0;
            for (std::int64_t q = where.queryLow; q <= where.queryHigh; ++q) {
                const int count = static_cast<int>(where.keyHigh - where.keyLow + 1);
                interpreter.run({0, where.headLow, q}, where.keyLow, count, nullptr);
                for (std::size_t n = 0; n < all.size(); ++n) {
                    const IntervalAnalysis::Range range = analysis.range(all[n]);
                    for (int k = 0; k < count; ++k) {
                        const int root = static_cast<int>(n);
                        const ProgramType type = program.nodes[n].type;
                        const double value = type == ProgramType::Bool ? interpreter.booleans(root)[k]
                                             : type == ProgramType::Float
                                                 ? interpreter.floats(root)[k]
                                                 : static_cast<double>(interpreter.integers(root)[k]);
                        ASSERT_TRUE(value >= range.low && value <= range.high)
                            << printNode(program, all[n]) << " = " << value << " outside " << range.low << " .. "
                            << range.high;
                        if (type == ProgramType::Int32 || type == ProgramType::Int64) {
                            break; // the first key of a row is enough for inner nodes
                        }
                    }
                }
            }
        }
    }
    EXPECT_GT(decided, vitrine::test::moreThan(400)) << "nothing was decided";
}

/// The closed form against the mask itself.
void expectRows(const Program& mask, const Captures& captures, std::int64_t length, bool mustExist) {
    const std::optional<IntervalRows> rows = intervalRows(mask);
    ASSERT_TRUE(rows.has_value() || !mustExist) << printProgram(mask, "mask");
    if (!rows.has_value()) {
        return;
    }
    EXPECT_EQ(inputsOf(rows->low)[static_cast<std::size_t>(rows->low.result)] & kOnKey, 0U);
    Interpreter<double> low(rows->low, captures.binding);
    Interpreter<double> high(rows->high, captures.binding);
    Interpreter<float> exact(mask, captures.binding);
    for (std::int64_t head = 0; head < 3; ++head) {
        for (std::int64_t q = 0; q < length; ++q) {
            const ProgramRow row{1, head, q};
            low.run(row, 0, 1, nullptr);
            high.run(row, 0, 1, nullptr);
            exact.run(row, 0, static_cast<int>(length), nullptr);
            for (std::int64_t k = 0; k < length; ++k) {
                const bool inside = k >= low.integers()[0] && k <= high.integers()[0];
                ASSERT_EQ(inside, exact.booleans()[k] != 0)
                    << printProgram(mask, "mask") << "q " << q << " k " << k << " h " << head << "\n"
                    << printProgram(rows->low, "low") << printProgram(rows->high, "high");
            }
        }
    }
}

TEST(IntervalRows, ClosedFormsOfTheUsualMasks) {
    const Captures none;
    expectRows(causalMask(), none, 64, true);
    expectRows(slidingWindowMask(7), none, 64, true);
    const auto check = [&](const auto& make) {
        Maker m;
        const Expr result = make(m);
        const Program program = m.finish(result);
        Captures captures;
        for (const ProgramCapture& capture : program.captures) {
            if (capture.rank == 0) {
                captures.add(std::vector<std::int32_t>{9}, Shape{});
            } else {
                captures.add(std::vector<std::int32_t>{12, 30, 4}, Shape{3});
            }
        }
        expectRows(program, captures, 64, true);
    };
    check([](Maker& m) { return m.k >= m.number(0); }); // noop
    check([](Maker& m) { return (m.k < m.load("prefix", ProgramType::Int32, {m.b})) | (m.q >= m.k); });
    check([](Maker& m) { return (m.q - m.k).of(ProgramOp::Abs) <= m.load("window", ProgramType::Int32, {}); });
    check([](Maker& m) { return floorDiv(m.q, 10) == floorDiv(m.k, 10); });
    check([](Maker& m) { return floorDiv(m.q, 10) >= floorDiv(m.k + 3, 10); });
    check([](Maker& m) { return (m.q >= m.k) & ((m.q - m.k) < (m.h + 1) * 5); });
    check([](Maker& m) { return where(m.h == m.number(1), m.q >= m.k, (m.k - m.q) <= m.number(3)); });
    check([](Maker& m) { return (m.q < m.number(5)) | ((m.q >= m.k) & ((m.q - m.k) <= m.number(4))); });
    check([](Maker& m) { return ~((m.k > m.q) | (m.q - m.k > m.number(8))); });
    check([](Maker& m) { return (m.q >= m.k) & (m.k.make(ProgramOp::Max, m.q - 4) <= m.q); });
    check([](Maker& m) { return m.q + m.load("offset", ProgramType::Int32, {m.h}) == m.k; });
}

TEST(IntervalRows, SaysNothingOfOtherShapes) {
    Maker m;
    EXPECT_FALSE(
        intervalRows(m.finish((m.k < m.number(4)) | (((m.q - m.k) < m.number(3)) & (m.q >= m.k)))).has_value());
    EXPECT_FALSE(intervalRows(m.finish((m.q - m.k) % 2 == m.number(0))).has_value());
    EXPECT_FALSE(intervalRows(m.finish(m.q != m.k)).has_value());
    const Expr ids = m.load("ids", ProgramType::Int32, {m.k});
    EXPECT_FALSE(intervalRows(m.finish(ids == m.load("ids", ProgramType::Int32, {m.q}))).has_value());
}

TEST(IntervalRows, RightOnRandomPrograms) {
    std::mt19937 random(3);
    for (int i = 0; i < vitrine::test::repetitions(1500); ++i) {
        testing::RandomProgram source(random, 48, 3);
        const Program program = source.mask();
        expectRows(program, source.captures(program), 48, false);
        if (HasFatalFailure()) {
            return;
        }
    }
}

} // namespace
} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/program_builder.h"

#include <cmath>
#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrine::kernels {
namespace {

using Value = ProgramBuilder::Value;

class Builder : public ::testing::Test {
protected:
    Value number(std::int64_t value) { return b.constant(value); }
    Value typed(std::int64_t value) { return b.cast(ProgramType::Int32, b.constant(value)); }

    ProgramBuilder b;
    Value q = b.input(ProgramOp::Query);
    Value k = b.input(ProgramOp::Key);
    Value score = b.input(ProgramOp::Score);
};

TEST_F(Builder, PromotesAsPyTorch) {
    const Value wide = b.cast(ProgramType::Int64, q);
    const Value flag = b.binary(ProgramOp::Lt, q, k);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Add, q, k)), ProgramType::Int32);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Add, q, wide)), ProgramType::Int64);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Add, q, number(7))), ProgramType::Int32);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Add, q, b.constant(std::int64_t{7}, false))), ProgramType::Int64);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Mul, q, b.constant(0.5))), ProgramType::Float);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Mul, score, number(2))), ProgramType::Float);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Mul, flag, number(2))), ProgramType::Int64);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Add, flag, q)), ProgramType::Int32);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Div, q, k)), ProgramType::Float);
    EXPECT_EQ(b.type(b.unary(ProgramOp::Sqrt, q)), ProgramType::Float);
    EXPECT_EQ(b.type(b.unary(ProgramOp::Floor, q)), ProgramType::Int32);
    EXPECT_EQ(b.type(b.unary(ProgramOp::Abs, flag)), ProgramType::Int64);
    EXPECT_EQ(b.type(b.select(flag, score, b.constant(-INFINITY))), ProgramType::Float);
    EXPECT_EQ(b.type(b.binary(ProgramOp::Lt, q, number(std::int64_t{1} << 40))), ProgramType::Bool);
}

TEST_F(Builder, FoldsPythonNumbersAsPython) {
    const auto folded = [&](ProgramOp op, std::int64_t left, std::int64_t right) {
        return b.integer(b.binary(op, number(left), number(right))).value();
    };
    EXPECT_EQ(folded(ProgramOp::FloorDiv, -7, 2), -4);
    EXPECT_EQ(folded(ProgramOp::FloorDiv, 7, -2), -4);
    EXPECT_EQ(folded(ProgramOp::Mod, -7, 3), 2);
    EXPECT_EQ(folded(ProgramOp::Mod, 7, -3), -2);
    EXPECT_EQ(folded(ProgramOp::Pow, 3, 4), 81);
    EXPECT_EQ(folded(ProgramOp::ShiftLeft, 3, 40), std::int64_t{3} << 40);
    EXPECT_EQ(b.real(b.binary(ProgramOp::Pow, number(2), number(-2))), 0.25);
    EXPECT_EQ(b.real(b.binary(ProgramOp::Div, number(1), number(4))), 0.25);
    EXPECT_EQ(b.real(b.binary(ProgramOp::Mod, b.constant(-7.5), number(2))), 0.5);
    EXPECT_EQ(b.real(b.binary(ProgramOp::FloorDiv, b.constant(-7.5), number(2))), -4.0);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::Add, b.constant(true), b.constant(true))), 2);
    EXPECT_EQ(b.boolean(b.binary(ProgramOp::And, b.constant(true), b.constant(false))), false);
    EXPECT_TRUE(b.isWeak(b.binary(ProgramOp::Add, number(1), number(2))));
    EXPECT_FALSE(b.isWeak(typed(1)));
    EXPECT_THROW(b.binary(ProgramOp::FloorDiv, number(1), number(0)), base::BadInput);
    EXPECT_THROW(b.binary(ProgramOp::Pow, number(10), number(30)), base::BadInput);
    EXPECT_THROW(b.binary(ProgramOp::ShiftLeft, number(1), number(-1)), base::BadInput);
    EXPECT_THROW(b.binary(ProgramOp::And, b.constant(1.5), q), base::BadInput);
}

TEST_F(Builder, WrapsTypedIntegersInTheirWidth) {
    const Value large = typed(2147483647);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::Add, large, number(1))), -2147483648LL);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::Mul, large, typed(2))), -2);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::FloorDiv, typed(-2147483648LL), typed(-1))), -2147483648LL);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::FloorDiv, typed(5), typed(0))), 0);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::ShiftLeft, typed(1), typed(32))), 0);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::ShiftRight, typed(-8), typed(40))), -1);
    EXPECT_EQ(b.integer(b.cast(ProgramType::Int32, b.constant(-2.9))), -2);
    EXPECT_EQ(b.integer(b.cast(ProgramType::Int32, b.constant(1e20))), 2147483647);
}

TEST_F(Builder, MergesEqualNodesAndSimplifiesWhatIsCertain) {
    EXPECT_EQ(b.binary(ProgramOp::Add, q, k), b.binary(ProgramOp::Add, k, q));
    EXPECT_NE(b.binary(ProgramOp::Sub, q, k), b.binary(ProgramOp::Sub, k, q));
    EXPECT_EQ(b.binary(ProgramOp::Add, q, number(0)), q);
    EXPECT_EQ(b.binary(ProgramOp::Mul, score, number(1)), score);
    EXPECT_EQ(b.integer(b.binary(ProgramOp::Sub, q, q)), 0);
    EXPECT_EQ(b.boolean(b.binary(ProgramOp::Le, q, q)), true);
    EXPECT_FALSE(b.boolean(b.binary(ProgramOp::Le, score, score)).has_value()) << "NaN is not <= NaN";
    const Value less = b.binary(ProgramOp::Lt, q, k);
    EXPECT_EQ(b.unary(ProgramOp::Not, less), b.binary(ProgramOp::Le, k, q));
    const Value odd = b.binary(ProgramOp::Lt, score, b.constant(0.0));
    EXPECT_EQ(b.unary(ProgramOp::Not, b.unary(ProgramOp::Not, odd)), odd);
    EXPECT_EQ(b.binary(ProgramOp::And, less, b.constant(true)), less);
    EXPECT_EQ(b.boolean(b.binary(ProgramOp::Or, less, b.constant(true))), true);
    EXPECT_EQ(b.select(less, q, q), q);
    EXPECT_EQ(b.select(less, b.constant(true), b.constant(false)), less);
}

TEST_F(Builder, CapturesHaveOneTypeAndRank) {
    const std::int32_t ids = b.capture({"ids", ProgramType::Int32, 1, false});
    EXPECT_EQ(b.capture({"ids", ProgramType::Int32, 1, false}), ids);
    EXPECT_THROW(b.capture({"ids", ProgramType::Int64, 1, false}), base::BadInput);
    EXPECT_THROW(b.capture({"deep", ProgramType::Int32, 4, false}), base::BadInput);
    const std::array<Value, 2> two{q, k};
    EXPECT_THROW(b.load(ids, two), base::BadInput);
    EXPECT_THROW(b.load(ids, std::array<Value, 1>{score}), base::BadInput);
    EXPECT_EQ(b.type(b.load(ids, std::array<Value, 1>{q})), ProgramType::Int32);
}

TEST_F(Builder, FinishKeepsWhatTheResultNeeds) {
    const std::int32_t unused = b.capture({"unused", ProgramType::Float, 0, false});
    const std::int32_t ids = b.capture({"ids", ProgramType::Int64, 1, false});
    static_cast<void>(b.scalar(unused));
    const Value left = b.load(ids, std::array<Value, 1>{q});
    const Value same = b.binary(ProgramOp::Eq, left, b.load(ids, std::array<Value, 1>{k}));
    const Program program = b.finish(same);
    EXPECT_TRUE(program.isMask());
    ASSERT_EQ(program.captures.size(), 1U);
    EXPECT_EQ(program.captures[0].name, "ids");
    EXPECT_EQ(program.nodes.size(), 5U);
    EXPECT_EQ(inputsOf(program)[static_cast<std::size_t>(program.result)],
              static_cast<unsigned>(kOnQuery | kOnKey | kOnCaptures));
    ProgramBuilder other;
    EXPECT_EQ(programKey(other.finish(other.inlined(program))), programKey(program));
    EXPECT_NE(programKey(causalMask()), programKey(slidingWindowMask(4)));
}

TEST_F(Builder, InlinedTakesSubstitutions) {
    const std::array<ProgramBuilder::Substitution, 1> later{
        {{ProgramOp::Query, b.binary(ProgramOp::Add, q, number(10))}}};
    const Value shifted = b.inlined(causalMask(), later);
    EXPECT_EQ(shifted, b.binary(ProgramOp::Le, k, b.binary(ProgramOp::Add, q, number(10))));
}

TEST_F(Builder, RefusesEndlessPrograms) {
    Value sum = q;
    EXPECT_THROW(
        {
            for (int i = 0; i < kMaxProgramNodes; ++i) {
                sum = b.binary(ProgramOp::Mul, sum, k);
            }
        },
        base::BadInput);
}

TEST(ProgramCaptures, ChecksNameWhatIsWrong) {
    ProgramBuilder b;
    const std::int32_t ids = b.capture({"document_id", ProgramType::Int32, 1, false});
    const Program program = b.finish(b.load(ids, std::array<Value, 1>{b.input(ProgramOp::Key)}));
    std::int32_t data = 0;
    const auto message = [&](const CaptureBinding& binding) -> std::string {
        try {
            checkCaptures(program, binding);
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return "";
    };
    EXPECT_EQ(message({{TensorView{&data, DType::I32, Shape{1}, 0}}}), "");
    EXPECT_EQ(message({}).rfind("document_id: ", 0), 0U);
    EXPECT_NE(message({{TensorView{&data, DType::I32, Shape{1, 1}, 0}}}).find("dimensions"), std::string::npos);
    EXPECT_NE(message({{TensorView{&data, DType::F32, Shape{1}, 0}}}).find("int32"), std::string::npos);
    EXPECT_NE(message({{TensorView{&data, DType::I32, Shape{0}, 0}}}).find("empty"), std::string::npos);
}

} // namespace
} // namespace vitrine::kernels

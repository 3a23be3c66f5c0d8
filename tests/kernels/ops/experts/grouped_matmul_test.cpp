// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/grouped_matmul.h"

#include "kernels/ops/experts/moe.h"
#include "tests/kernels/ops/common/gradient_testing.h"
#include "tests/kernels/ops/experts/expert_testing.h"

namespace vitrine::kernels {
namespace {

using testing::denseStack;
using testing::mxfp4Stack;
using testing::TestGroups;
using testing::TestStack;
using testing::TestTensor;
using Values = std::vector<double>;

constexpr std::int64_t kExperts = 6;

/// An expected result; rounding errors grow with the sums of absolute products.
struct GroupedReference {
    Values values;
    double largest = 1;

    double tolerance(DType sums) const { return largest * (sums == DType::F64 ? 1e-14 : 4e-7); }
};

/// Adds scale * sum over k < depth of a(i, k) b(k, j) to element (i, j) of `rows` rows of `columns`.
template <class A, class B>
void addProduct(GroupedReference& to, std::int64_t rows, std::int64_t columns, std::int64_t depth, double scale,
                const A& a, const B& b) {
    to.values.resize(static_cast<std::size_t>(rows * columns), 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            double sum = 0, magnitude = 0;
            for (std::int64_t k = 0; k < depth; ++k) {
                const double term = scale * a(i, k) * b(i, k, j);
                sum += term;
                magnitude += std::fabs(term);
            }
            to.values[static_cast<std::size_t>(i * columns + j)] += sum;
            to.largest = std::max(to.largest, magnitude);
        }
    }
}

/// Element (row, column) of a matrix with so many columns.
auto at(const Values& values, std::int64_t columns) {
    return [&values, columns](std::int64_t row, std::int64_t column) {
        return values[static_cast<std::size_t>(row * columns + column)];
    };
}

/// Every storage form, with `in` a multiple of 32.
std::vector<TestStack> everyStack(std::mt19937& random, std::int64_t out, std::int64_t in) {
    std::vector<TestStack> stacks;
    for (const bool transposed : {false, true}) {
        for (const DType type : {DType::BF16, DType::F32}) {
            stacks.push_back(denseStack(random, type, kExperts, out, in, transposed));
        }
    }
    stacks.push_back(mxfp4Stack(random, kExperts, out, in));
    return stacks;
}

TEST(GroupedMatmul, RowsAreThoseOfExpertMatmulToTheLastBit) {
    std::mt19937 random(1);
    constexpr std::int64_t kIn = 96, kOut = 133;
    testing::forEachSimd([&](CpuContext& context) {
        for (const TestStack& stack : everyStack(random, kOut, kIn)) {
            for (const std::int64_t tokens : {1, 5, 90, 400}) {
                for (const DType type : {DType::F32, DType::BF16}) {
                    const TestGroups groups(random, tokens, 2, kExperts, 4);
                    TestTensor x(type, Shape{tokens, kIn}), bias(DType::BF16, Shape{kExperts, kOut});
                    TestTensor byPair(type, Shape{2 * tokens, kOut}), rows(type, Shape{2 * tokens, kIn}, kIn + 3);
                    TestTensor out(type, Shape{2 * tokens, kOut}, kOut + 5);
                    x.fillNormal(random);
                    bias.fillNormal(random);
                    testing::runOp(context, ExpertMatmul{x, true, groups.ids, stack.view, bias, byPair, {}});
                    testing::runOp(context, GatherPairs{x, groups.pairs, rows});
                    testing::runOp(context,
                                   GroupedMatmul{rows, groups.starts, {stack.view, bias, {}}, 1, false, out, {}});
                    const Values pairs = groups.pairs.values(), all = byPair.values();
                    Values expected;
                    for (const double pair : pairs) {
                        const auto first = all.begin() + static_cast<std::ptrdiff_t>(pair) * kOut;
                        expected.insert(expected.end(), first, first + kOut);
                    }
                    ASSERT_EQ(out.values(), expected) << tokens << " tokens";
                    EXPECT_TRUE(out.guardsIntact());
                }
            }
        }
    });
}

void expectGrouped(CpuContext& context, std::mt19937& random, const TestStack& stack, std::int64_t tokens, DType type,
                   float scale, bool accumulate, bool withBias) {
    const TestGroups groups(random, tokens, 2, kExperts, 5);
    const std::int64_t in = stack.view.inFeatures(), width = stack.view.outFeatures(), rows = groups.rows();
    TestTensor x(type, Shape{rows, in}, in + 3), bias(type, Shape{kExperts, width}, width + 1);
    TestTensor out(type, Shape{rows, width}, width + 7);
    x.fillNormal(random);
    bias.fillNormal(random);
    GroupedReference reference;
    if (accumulate) {
        out.fillNormal(random);
        reference.values = out.values();
    }
    testing::runOp(
        context,
        GroupedMatmul{
            x, groups.starts, {stack.view, withBias ? bias.view() : TensorView{}, {}}, scale, accumulate, out, {}});
    const std::vector<std::int64_t> experts = groups.expertOfRow();
    const Values xs = x.values(), biases = bias.values();
    addProduct(reference, rows, width, in, scale, at(xs, in), [&](std::int64_t row, std::int64_t k, std::int64_t o) {
        return at(stack.values, in)(experts[static_cast<std::size_t>(row)] * width + o, k);
    });
    if (withBias) {
        addProduct(
            reference, rows, width, 1, 1, [](std::int64_t, std::int64_t) { return 1.0; },
            [&](std::int64_t row, std::int64_t, std::int64_t o) {
                return at(biases, width)(experts[static_cast<std::size_t>(row)], o);
            });
    }
    testing::expectNear(out, reference.values, reference.tolerance(type));
}

TEST(GroupedMatmul, AgainstDouble) {
    std::mt19937 random(2);
    testing::forEachSimd([&](CpuContext& context) {
        for (const TestStack& stack : everyStack(random, 37, 64)) {
            for (const DType type : {DType::F32, DType::BF16}) {
                expectGrouped(context, random, stack, 30, type, 1, true, true);
                expectGrouped(context, random, stack, 3, type, 0.5F, false, true);
                expectGrouped(context, random, stack, 200, type, 0.3F, true, false);
            }
        }
    });
    CpuContext context(2);
    for (const bool transposed : {false, true}) {
        const TestStack stack = denseStack(random, DType::F64, kExperts, 21, 43, transposed);
        expectGrouped(context, random, stack, 30, DType::F64, 0.25F, true, true);
    }
}

TEST(GroupedMatmul, AdapterAddsItsLowRankProduct) {
    std::mt19937 random(3);
    CpuContext context(2);
    constexpr std::int64_t kIn = 64, kOut = 37, kRank = 8;
    for (const bool accumulate : {false, true}) {
        for (const TestStack& stack : everyStack(random, kOut, kIn)) {
            const TestGroups groups(random, 40, 2, kExperts, 4);
            const std::int64_t rows = groups.rows();
            const TestStack a = denseStack(random, DType::F32, kExperts, kRank, kIn, false);
            const TestStack b = denseStack(random, DType::F32, kExperts, kOut, kRank, false);
            TestTensor x(DType::F32, Shape{rows, kIn}), out(DType::F32, Shape{rows, kOut});
            x.fillNormal(random);
            GroupedReference reference;
            if (accumulate) {
                out.fillNormal(random);
                reference.values = out.values();
            }
            GroupedMatmul op{x, groups.starts, {stack.view, {}, {a.dense, b.dense, 0.75F}}, 0.5F, accumulate, out, {}};
            testing::runOp(context, op);
            const std::vector<std::int64_t> experts = groups.expertOfRow();
            const Values xs = x.values();
            const auto ofRow = [&](const TestStack& from, std::int64_t row, std::int64_t o, std::int64_t k) {
                const std::int64_t in = from.view.inFeatures();
                const std::int64_t expert = experts[static_cast<std::size_t>(row)];
                return at(from.values, in)(expert * from.view.outFeatures() + o, k);
            };
            GroupedReference hidden;
            addProduct(hidden, rows, kRank, kIn, 0.75, at(xs, kIn),
                       [&](std::int64_t row, std::int64_t k, std::int64_t o) { return ofRow(a, row, o, k); });
            addProduct(reference, rows, kOut, kIn, 0.5, at(xs, kIn),
                       [&](std::int64_t row, std::int64_t k, std::int64_t o) { return ofRow(stack, row, o, k); });
            addProduct(reference, rows, kOut, kRank, 1, at(hidden.values, kRank),
                       [&](std::int64_t row, std::int64_t k, std::int64_t o) { return ofRow(b, row, o, k); });
            testing::expectNear(out, reference.values, 10 * reference.tolerance(DType::F32));
        }
    }
}

void expectGroupedInput(CpuContext& context, std::mt19937& random, const TestStack& stack, std::int64_t tokens,
                        DType type, DType result, float scale, bool accumulate) {
    const TestGroups groups(random, tokens, 2, kExperts, 5);
    const std::int64_t in = stack.view.inFeatures(), width = stack.view.outFeatures(), rows = groups.rows();
    TestTensor gradOut(type, Shape{rows, width}, width + 3), gradX(result, Shape{rows, in}, in + 5);
    gradOut.fillNormal(random);
    GroupedReference reference;
    if (accumulate) {
        gradX.fillNormal(random);
        reference.values = gradX.values();
    }
    testing::runOp(context, GroupedInputGradient{gradOut, groups.starts, stack.view, scale, accumulate, gradX, {}});
    const std::vector<std::int64_t> experts = groups.expertOfRow();
    const Values grads = gradOut.values();
    addProduct(reference, rows, in, width, scale, at(grads, width),
               [&](std::int64_t row, std::int64_t o, std::int64_t i) {
                   return at(stack.values, in)(experts[static_cast<std::size_t>(row)] * width + o, i);
               });
    testing::expectNear(gradX, reference.values, reference.tolerance(type));
}

TEST(GroupedInputGradient, AgainstDouble) {
    std::mt19937 random(4);
    testing::forEachSimd([&](CpuContext& context) {
        for (const TestStack& stack : everyStack(random, 37, 64)) {
            expectGroupedInput(context, random, stack, 30, DType::F32, DType::F32, 1, true);
            expectGroupedInput(context, random, stack, 200, DType::BF16, DType::BF16, 0.5F, false);
            expectGroupedInput(context, random, stack, 3, DType::BF16, DType::F32, 2, false);
        }
    });
    CpuContext context(2);
    for (const bool transposed : {false, true}) {
        const TestStack stack = denseStack(random, DType::F64, kExperts, 21, 43, transposed);
        expectGroupedInput(context, random, stack, 30, DType::F64, DType::F64, 0.25F, transposed);
    }
}

/// Of the product and an adapter's part together. The latter is added to a result that is rounded already.
void expectGroupedInputWithAdapter(std::mt19937& random, const TestStack& stack, DType type, bool accumulate) {
    constexpr std::int64_t kRank = 8;
    CpuContext context(2);
    const TestGroups groups(random, 40, 2, kExperts, 5);
    const std::int64_t in = stack.view.inFeatures(), width = stack.view.outFeatures(), rows = groups.rows();
    const TestStack a = denseStack(random, type, kExperts, kRank, in, false);
    TestTensor gradOut(type, Shape{rows, width}, width + 3), gradX(type, Shape{rows, in}, in + 5);
    TestTensor low(type, Shape{rows, kRank}, kRank + 2);
    gradOut.fillNormal(random);
    low.fillNormal(random);
    GroupedReference reference;
    if (accumulate) {
        gradX.fillNormal(random);
        reference.values = gradX.values();
    }
    GroupedInputGradient op{gradOut, groups.starts, stack.view, 0.5F, accumulate, gradX, {}, low, a.dense};
    testing::runOp(context, op);
    const std::vector<std::int64_t> experts = groups.expertOfRow();
    const Values grads = gradOut.values(), lows = low.values();
    const auto addTo = [&](const Values& left, const TestStack& from, double scale) {
        const std::int64_t depth = from.view.outFeatures();
        addProduct(reference, rows, in, depth, scale, at(left, depth),
                   [&](std::int64_t row, std::int64_t k, std::int64_t i) {
                       return at(from.values, in)(experts[static_cast<std::size_t>(row)] * depth + k, i);
                   });
    };
    addTo(grads, stack, 0.5);
    addTo(lows, a, 1);
    testing::expectNear(gradX, reference.values, 2 * reference.tolerance(type));
    EXPECT_TRUE(gradX.guardsIntact());
}

TEST(GroupedInputGradient, AdapterAddsItsLowRankProduct) {
    std::mt19937 random(11);
    for (const bool accumulate : {false, true}) {
        for (const TestStack& stack : everyStack(random, 37, 64)) {
            expectGroupedInputWithAdapter(random, stack, DType::F32, accumulate);
        }
        for (const bool transposed : {false, true}) {
            const TestStack stack = denseStack(random, DType::F64, kExperts, 21, 43, transposed);
            expectGroupedInputWithAdapter(random, stack, DType::F64, accumulate);
        }
    }
}

void expectGroupedWeight(CpuContext& context, std::mt19937& random, std::int64_t tokens, DType type, DType result,
                         bool accumulate) {
    constexpr std::int64_t kIn = 41, kOut = 133;
    const TestGroups groups(random, tokens, 2, kExperts, 4); // two experts have no rows
    const std::int64_t rows = groups.rows();
    TestTensor x(type, Shape{rows, kIn}, kIn + 3), gradOut(type, Shape{rows, kOut}, kOut + 1);
    TestTensor gradWeight(result, Shape{kExperts, kOut, kIn});
    x.fillNormal(random);
    gradOut.fillNormal(random);
    GroupedReference reference;
    if (accumulate) {
        gradWeight.fillNormal(random);
        reference.values = gradWeight.values();
    }
    testing::runOp(context, GroupedWeightGradient{x, gradOut, groups.starts, accumulate, gradWeight});
    const std::vector<std::int64_t> experts = groups.expertOfRow();
    const Values xs = x.values(), grads = gradOut.values();
    addProduct(
        reference, kExperts * kOut, kIn, rows, 1,
        [&](std::int64_t place, std::int64_t row) {
            return experts[static_cast<std::size_t>(row)] == place / kOut ? at(grads, kOut)(row, place % kOut) : 0;
        },
        [&](std::int64_t, std::int64_t row, std::int64_t i) { return at(xs, kIn)(row, i); });
    testing::expectNear(gradWeight, reference.values, reference.tolerance(type));
}

TEST(GroupedWeightGradient, AgainstDoubleAndZerosWithoutRows) {
    std::mt19937 random(5);
    testing::forEachSimd([&](CpuContext& context) {
        for (const bool accumulate : {false, true}) {
            for (const std::int64_t tokens : {0, 1, 40, 300}) {
                expectGroupedWeight(context, random, tokens, DType::F32, DType::F32, accumulate);
                expectGroupedWeight(context, random, tokens, DType::BF16, DType::F32, accumulate);
                expectGroupedWeight(context, random, tokens, DType::BF16, DType::BF16, accumulate);
            }
        }
    });
    CpuContext context(2);
    expectGroupedWeight(context, random, 30, DType::F64, DType::F64, true);
}

/// Both gradients are adjoints: <gradOut, W x> = <gradX, x> = <gradWeight, W>; of a stack that is stored (experts, in,
/// out) when x and gradOut change places.
TEST(GroupedGradients, AreTheAdjointsOfGroupedMatmul) {
    std::mt19937 random(6);
    CpuContext context(2);
    for (const bool transposed : {false, true}) {
        const TestGroups groups(random, 25, 3, kExperts, 5);
        const TestStack stack = denseStack(random, DType::F64, kExperts, 21, 34, transposed);
        TestTensor x(DType::F64, Shape{75, 34}), out(DType::F64, Shape{75, 21}), gradOut(DType::F64, Shape{75, 21});
        TestTensor gradX(DType::F64, Shape{75, 34}), gradWeight(DType::F64, stack.dense.view().shape);
        x.fillNormal(random);
        gradOut.fillNormal(random);
        testing::runOp(context, GroupedMatmul{x, groups.starts, {stack.view, {}, {}}, 1, false, out, {}});
        testing::runOp(context, GroupedInputGradient{gradOut, groups.starts, stack.view, 1, false, gradX, {}});
        testing::runOp(context, GroupedWeightGradient{transposed ? gradOut : x, transposed ? x : gradOut, groups.starts,
                                                      false, gradWeight});
        const double expected = testing::dotOf(gradOut, out);
        EXPECT_NEAR(testing::dotOf(gradX, x), expected, 1e-9);
        EXPECT_NEAR(testing::dotOf(gradWeight, stack.dense), expected, 1e-9);
    }
}

TEST(GroupedBiasGradient, AgainstDouble) {
    std::mt19937 random(7);
    CpuContext context(3);
    for (const auto& [type, sums] :
         {std::pair{DType::F32, DType::F32}, {DType::BF16, DType::F32}, {DType::F64, DType::F64}}) {
        for (const bool weighted : {false, true}) {
            const TestGroups groups(random, 90, 2, kExperts, 4);
            TestTensor gradOut(type, Shape{180, 600}, 603), weights(DType::F32, Shape{180});
            TestTensor gradBias(sums, Shape{kExperts, 600});
            gradOut.fillNormal(random);
            weights.fillNormal(random);
            gradBias.fillNormal(random);
            Values expected = gradBias.values();
            testing::runOp(context, GroupedBiasGradient{gradOut, weighted ? weights.view() : TensorView{},
                                                        groups.starts, gradBias});
            const Values grads = gradOut.values(), shares = weights.values();
            const std::vector<std::int64_t> experts = groups.expertOfRow();
            for (std::size_t i = 0; i < grads.size(); ++i) {
                const std::size_t row = i / 600;
                expected[static_cast<std::size_t>(experts[row]) * 600 + i % 600] +=
                    (weighted ? shares[row] : 1) * grads[i];
            }
            testing::expectClose(gradBias, expected, sums == DType::F64 ? 1e-13 : 2e-6);
        }
    }
}

TEST(GroupedDots, AgainstDouble) {
    std::mt19937 random(8);
    CpuContext context(3);
    for (const auto& [type, sums] :
         {std::pair{DType::F32, DType::F32}, {DType::BF16, DType::F32}, {DType::F64, DType::F64}}) {
        const TestGroups groups(random, 90, 2, kExperts, 4);
        TestTensor x(type, Shape{180, 601}, 604), vectors(type, Shape{kExperts, 601}, 602), out(sums, Shape{180});
        x.fillNormal(random);
        vectors.fillNormal(random);
        out.fillNormal(random);
        Values expected = out.values();
        testing::runOp(context, GroupedDots{x, groups.starts, vectors, out});
        const Values xs = x.values(), vs = vectors.values();
        const std::vector<std::int64_t> experts = groups.expertOfRow();
        for (std::size_t i = 0; i < xs.size(); ++i) {
            expected[i / 601] += xs[i] * vs[static_cast<std::size_t>(experts[i / 601]) * 601 + i % 601];
        }
        testing::expectClose(out, expected, sums == DType::F64 ? 1e-13 : 2e-6);
    }
}

/// The same op on one thread and on five: equal to the last bit. `output` is what the op writes.
template <class Op> void expectSameOnFiveThreads(const Op& op, TestTensor& output) {
    const Values before = output.values();
    CpuContext one(1), five(5);
    testing::runOp(one, op);
    const std::vector<unsigned char> expected = output.storage();
    output.fill(before);
    testing::runOp(five, op);
    EXPECT_EQ(output.storage(), expected);
}

TEST(GroupedProducts, ThreadsChangeNoBit) {
    std::mt19937 random(9);
    const TestGroups groups(random, 150, 2, kExperts, 5);
    const TestStack stack = denseStack(random, DType::BF16, kExperts, 300, 64, false);
    TestTensor x(DType::F32, Shape{300, 64}), out(DType::F32, Shape{300, 300}), dots(DType::F32, Shape{300});
    TestTensor gradX(DType::F32, Shape{300, 64}), gradWeight(DType::F32, Shape{kExperts, 300, 64});
    TestTensor gradBias(DType::F32, Shape{kExperts, 300}), vectors(DType::F32, Shape{kExperts, 64});
    for (TestTensor* tensor : {&x, &out, &dots, &gradX, &gradWeight, &gradBias, &vectors}) {
        tensor->fillNormal(random);
    }
    const TensorView starts = groups.starts;
    expectSameOnFiveThreads(GroupedMatmul{x, starts, {stack.view, {}, {}}, 1, true, out, {}}, out);
    expectSameOnFiveThreads(GroupedInputGradient{out, starts, stack.view, 1, true, gradX, {}}, gradX);
    expectSameOnFiveThreads(GroupedWeightGradient{x, out, starts, true, gradWeight}, gradWeight);
    expectSameOnFiveThreads(GroupedBiasGradient{out, {}, starts, gradBias}, gradBias);
    expectSameOnFiveThreads(GroupedDots{x, starts, vectors, dots}, dots);
}

TEST(GroupedProducts, ChecksNameTheField) {
    std::mt19937 random(10);
    const TestStack stack = denseStack(random, DType::F32, 3, 8, 16, false);
    TestTensor x(DType::F32, Shape{10, 16}), out(DType::F32, Shape{10, 8}), starts(DType::I32, Shape{4});
    TestTensor gradWeight(DType::F32, Shape{3, 8, 16}), gradBias(DType::F32, Shape{3, 8}), dots(DType::F32, Shape{10});
    const GroupedMatmul product{x, starts, {stack.view, {}, {}}, 1, false, out, {}};
    check(product);
    GroupedMatmul op = product;
    op.starts.shape = Shape{3};
    testing::expectCheckNames(op, "starts");
    op = product;
    op.out.shape = Shape{10, 7};
    testing::expectCheckNames(op, "out");
    op = product;
    op.linear.weight.shape = Shape{8, 16};
    testing::expectCheckNames(op, "weight");
    op = product;
    op.linear.weight.data.strides[0] = 9 * 16; // gaps between experts
    testing::expectCheckNames(op, "weight");
    op = product;
    op.linear.adapter = {gradWeight, gradWeight, 1}; // rank 8
    testing::expectCheckNames(op, "adapter.b");
    const GroupedInputGradient input{out, starts, stack.view, 1, false, x, {}};
    check(input);
    GroupedInputGradient wrongInput = input;
    wrongInput.gradX.shape = Shape{9, 16};
    testing::expectCheckNames(wrongInput, "gradX");
    wrongInput = input;
    wrongInput.low = out;
    wrongInput.adapterA = gradWeight; // rank 8
    check(wrongInput);
    EXPECT_GT(cost(wrongInput, {}).flops, cost(input, {}).flops);
    wrongInput.low.shape = Shape{10, 7};
    testing::expectCheckNames(wrongInput, "adapterA");
    wrongInput.low.shape = Shape{9, 8};
    testing::expectCheckNames(wrongInput, "low");
    const GroupedWeightGradient weight{x, out, starts, false, gradWeight};
    check(weight);
    GroupedWeightGradient wrongWeight = weight;
    wrongWeight.gradWeight.shape = Shape{3, 16, 8};
    testing::expectCheckNames(wrongWeight, "gradWeight");
    const GroupedBiasGradient bias{out, dots, starts, gradBias};
    check(bias);
    GroupedBiasGradient wrongBias = bias;
    wrongBias.gradBias.dtype = DType::BF16;
    testing::expectCheckNames(wrongBias, "gradBias");
    const GroupedDots dot{out, starts, gradBias, dots};
    check(dot);
    GroupedDots wrongDot = dot;
    wrongDot.out.shape = Shape{9};
    testing::expectCheckNames(wrongDot, "out");
}

} // namespace
} // namespace vitrine::kernels

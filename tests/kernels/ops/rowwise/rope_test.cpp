// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rope.h"

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(Rope, HalvesRotateAgainstDouble) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        for (const auto& [tokens, heads, dim] : {std::tuple{1, 1, 2}, {5, 3, 64}, {33, 2, 10}}) {
            TestTensor x(type, Shape{tokens, heads, dim}, heads * dim + 4);
            TestTensor positions(DType::I32, Shape{tokens});
            TestTensor inverse(DType::F32, Shape{dim / 2});
            x.fillNormal(random);
            std::vector<std::int32_t> numbers;
            std::vector<double> frequencies;
            for (int t = 0; t < tokens; ++t) {
                numbers.push_back(t * 997);
            }
            for (int i = 0; i < dim / 2; ++i) {
                frequencies.push_back(std::pow(10000.0, -2.0 * i / dim));
            }
            positions.fillInts(numbers);
            inverse.fill(frequencies);
            const std::vector<double> before = x.values();
            testing::runOp(context, Rope{x, positions, inverse, 1.25F});
            std::vector<double> expected = before;
            for (int t = 0; t < tokens; ++t) {
                for (int h = 0; h < heads; ++h) {
                    for (int i = 0; i < dim / 2; ++i) {
                        const std::size_t low = static_cast<std::size_t>((t * heads + h) * dim + i);
                        const std::size_t high = low + static_cast<std::size_t>(dim / 2);
                        // The angle is a float32 product, as transformers makes it.
                        const float angle = static_cast<float>(numbers[static_cast<std::size_t>(t)]) *
                                            inverse.view().as<const float>()[i];
                        double c = std::cos(static_cast<double>(angle)) * 1.25;
                        double s = std::sin(static_cast<double>(angle)) * 1.25;
                        roundFloats(type, &c, 1);
                        roundFloats(type, &s, 1);
                        expected[low] = before[low] * c - before[high] * s;
                        expected[high] = before[high] * c + before[low] * s;
                    }
                }
            }
            testing::expectNear(x, expected, type == DType::BF16 ? 5e-2 : 2e-6, 1.01);
        }
    }
}

TEST(Rope, InterleavedPairsTurnAsHalvesDo) {
    constexpr std::int64_t kTokens = 3, kHeads = 2, kDim = 10, kHeadStride = 16;
    std::mt19937 random(3);
    CpuContext context(2);
    // Heads with a stride, as the rotated parts of wider heads have.
    TestTensor wide(DType::F32, Shape{kTokens, kHeads, kHeadStride});
    TestTensor halves(DType::F32, Shape{kTokens, kHeads, kDim});
    TestTensor positions(DType::I32, Shape{kTokens}), inverse(DType::F32, Shape{kDim / 2});
    wide.fillNormal(random);
    positions.fillInts({0, 5, 1234});
    inverse.fill({1, 0.3, 0.1, 0.03, 0.01});
    const auto at = [](std::int64_t row, std::int64_t i) { return static_cast<std::size_t>(row * kHeadStride + i); };
    const std::vector<double> before = wide.values();
    std::vector<double> apart;
    for (std::int64_t row = 0; row < kTokens * kHeads; ++row) {
        for (std::int64_t i = 0; i < kDim; ++i) {
            apart.push_back(before[at(row, 6 + (i < kDim / 2 ? 2 * i : 2 * i - kDim + 1))]);
        }
    }
    halves.fill(apart);
    Rope op{slice(wide, 2, 6, kHeadStride), positions, inverse, 0.75F};
    op.interleaved = true;
    testing::runOp(context, op);
    testing::runOp(context, Rope{halves, positions, inverse, 0.75F});
    const std::vector<double> turned = halves.values();
    std::vector<double> expected = before;
    for (std::int64_t row = 0; row < kTokens * kHeads; ++row) {
        for (std::int64_t i = 0; i < kDim; ++i) {
            expected[at(row, 6 + (i < kDim / 2 ? 2 * i : 2 * i - kDim + 1))] =
                turned[static_cast<std::size_t>(row * kDim + i)];
        }
    }
    EXPECT_EQ(wide.values(), expected);
}

TEST(Rope, InverseIsTheTransposedRotation) {
    std::mt19937 random(4);
    CpuContext context(2);
    TestTensor x(DType::F64, Shape{5, 3, 10}), y(DType::F64, Shape{5, 3, 10});
    TestTensor positions(DType::I32, Shape{5}), inverse(DType::F32, Shape{5});
    x.fillNormal(random);
    y.fillNormal(random);
    positions.fillInts({0, 1, 7, 1000, 99999});
    inverse.fill({1, 0.3, 0.1, 0.03, 0.01});
    const std::vector<double> before = x.values(), other = y.values();
    testing::runOp(context, Rope{x, positions, inverse, 1.25F});
    testing::runOp(context, Rope{y, positions, inverse, 1.25F, true});
    // (R x) . y = x . (R^T y) in every head.
    const std::vector<double> turned = x.values(), back = y.values();
    for (std::size_t head = 0; head < 15; ++head) {
        double first = 0, second = 0;
        for (std::size_t i = head * 10; i < head * 10 + 10; ++i) {
            first += turned[i] * other[i];
            second += before[i] * back[i];
        }
        EXPECT_NEAR(first, second, 1e-12);
    }
    testing::runOp(context, Rope{x, positions, inverse, 1.25F, true});
    std::vector<double> expected = before;
    for (double& value : expected) {
        value *= 1.25 * 1.25;
    }
    testing::expectNear(x, expected, 1e-6);
}

TEST(Rope, PositionZeroKeepsTheVectorTimesTheScale) {
    CpuContext context(1);
    TestTensor x(DType::F32, Shape{1, 1, 4});
    TestTensor positions(DType::I32, Shape{1});
    TestTensor inverse(DType::F32, Shape{2});
    x.fill({1, 2, 3, 4});
    positions.fillInts({0});
    inverse.fill({1, 0.5});
    testing::runOp(context, Rope{x, positions, inverse, 2});
    EXPECT_EQ(x.values(), (std::vector<double>{2, 4, 6, 8}));
}

TEST(Rope, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{2, 1, 4});
    TestTensor positions(DType::I32, Shape{2});
    TestTensor inverse(DType::F32, Shape{2});
    Rope op{x, positions, inverse, 1};
    check(op);
    op.inverseFrequency.shape = Shape{1};
    testing::expectCheckNames(op, "inverseFrequency");
    op = Rope{x, positions, inverse, 1};
    op.positions.dtype = DType::I64;
    testing::expectCheckNames(op, "positions");
}

} // namespace
} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul_gradients.h"

#include "kernels/ops/linear/matmul.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::denseWeight;
using testing::mxfp4Weight;
using testing::nf4Weight;
using testing::TestTensor;
using testing::TestWeight;

struct Sizes {
    std::int64_t rows, in, out;
};

/// Few rows, more rows than a tile has, odd sizes, and sizes beyond one tile in every axis.
const std::vector<Sizes> kSizes{{1, 1, 1},   {2, 33, 9},    {3, 65, 64},   {7, 31, 5},      {8, 129, 300},
                                {9, 40, 77}, {47, 130, 67}, {257, 96, 31}, {300, 150, 521}, {530, 17, 259}};

struct Reference {
    std::vector<double> values;
    double largest = 1; ///< of the sums of absolute products: rounding errors grow with it
};

/// sums[i][j] = before[i][j] + sum over k of a(i, k) b(k, j); `before` is empty for zeros.
template <class A, class B>
Reference referenceProduct(std::int64_t m, std::int64_t n, std::int64_t k, const std::vector<double>& before,
                           const A& a, const B& b) {
    Reference reference;
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = before.empty() ? 0 : before[static_cast<std::size_t>(i * n + j)];
            double magnitude = 0;
            for (std::int64_t c = 0; c < k; ++c) {
                const double term = a(i, c) * b(c, j);
                sum += term;
                magnitude += std::fabs(term);
            }
            reference.values.push_back(sum);
            reference.largest = std::max(reference.largest, magnitude);
        }
    }
    return reference;
}

/// Element (row, column) of values with so many columns.
auto elementsOf(const std::vector<double>& values, std::int64_t columns) {
    return [&values, columns](std::int64_t row, std::int64_t column) {
        return values[static_cast<std::size_t>(row * columns + column)];
    };
}

double absoluteError(DType sums, const Reference& reference) {
    return reference.largest * (sums == DType::F64 ? 1e-14 : 4e-7);
}

void expectInputGradient(CpuContext& context, std::mt19937& random, const TestWeight& weight, std::int64_t rows,
                         DType type, DType result, bool accumulate) {
    const std::int64_t in = weight.view.inFeatures(), out = weight.view.outFeatures();
    TestTensor gradOut(type, Shape{rows, out}, out + 3);
    TestTensor gradX(result, Shape{rows, in}, in + 7);
    gradOut.fillNormal(random);
    if (accumulate) {
        gradX.fillNormal(random);
    }
    const std::vector<double> before = accumulate ? gradX.values() : std::vector<double>{};
    MatmulInputGradient op{gradOut, weight.view, gradX, accumulate, {}};
    op.scale = accumulate ? 0.5F : 1.0F;
    testing::runOp(context, op);
    std::vector<double> grads = gradOut.values();
    for (double& value : grads) {
        value *= static_cast<double>(op.scale);
    }
    const Reference reference =
        referenceProduct(rows, in, out, before, elementsOf(grads, out), elementsOf(weight.values, in));
    testing::expectNear(gradX, reference.values, absoluteError(type, reference));
    EXPECT_TRUE(gradOut.guardsIntact());
}

void expectWeightGradient(CpuContext& context, std::mt19937& random, const Sizes& sizes, DType xType, DType gradType,
                          DType result, bool accumulate) {
    const auto [rows, in, out] = sizes;
    TestTensor x(xType, Shape{rows, in}, in + 5);
    TestTensor gradOut(gradType, Shape{rows, out}, out + 3);
    TestTensor gradWeight(result, Shape{out, in}, in + 7);
    x.fillNormal(random);
    gradOut.fillNormal(random);
    if (accumulate) {
        gradWeight.fillNormal(random);
    }
    const std::vector<double> before = accumulate ? gradWeight.values() : std::vector<double>{};
    testing::runOp(context, MatmulWeightGradient{x, gradOut, gradWeight, accumulate});
    const std::vector<double> xs = x.values(), grads = gradOut.values();
    const auto gradAt = elementsOf(grads, out);
    const Reference reference = referenceProduct(
        out, in, rows, before, [&](std::int64_t o, std::int64_t r) { return gradAt(r, o); }, elementsOf(xs, in));
    testing::expectNear(gradWeight, reference.values, absoluteError(gradType, reference));
}

TEST(MatmulInputGradient, DenseAgainstDouble) {
    std::mt19937 random(1);
    testing::forEachSimd([&](CpuContext& context) {
        for (const DType weightType : {DType::BF16, DType::F16, DType::F32}) {
            for (const bool transposed : {false, true}) {
                for (const auto& [rows, in, out] : kSizes) {
                    SCOPED_TRACE(::testing::Message() << rows << " rows, in " << in << ", out " << out);
                    const TestWeight weight = denseWeight(random, weightType, out, in, transposed);
                    expectInputGradient(context, random, weight, rows, weightType, weightType, rows % 2 == 0);
                    expectInputGradient(context, random, weight, rows, DType::F32, DType::F32, rows % 2 != 0);
                }
            }
        }
    });
}

TEST(MatmulInputGradient, Mxfp4AgainstDouble) {
    std::mt19937 random(2);
    testing::forEachSimd([&](CpuContext& context) {
        for (const auto& [rows, in, out] : {Sizes{1, 32, 1}, {2, 96, 9}, {8, 160, 300}, {9, 64, 65}, {270, 544, 150}}) {
            SCOPED_TRACE(::testing::Message() << rows << " rows, in " << in << ", out " << out);
            const TestWeight weight = mxfp4Weight(random, out, in);
            expectInputGradient(context, random, weight, rows, DType::BF16, DType::BF16, false);
            expectInputGradient(context, random, weight, rows, DType::F32, DType::F32, true);
        }
    });
}

TEST(MatmulInputGradient, Nf4AgainstDouble) {
    std::mt19937 random(12);
    testing::forEachSimd([&](CpuContext& context) {
        for (const bool packedScales : {false, true}) {
            for (const auto& [rows, in, out] : {Sizes{1, 64, 1}, {2, 192, 9}, {8, 128, 300}, {270, 576, 150}}) {
                SCOPED_TRACE(::testing::Message() << rows << " rows, in " << in << ", out " << out);
                const TestWeight weight = nf4Weight(random, out, in, packedScales);
                expectInputGradient(context, random, weight, rows, DType::BF16, DType::BF16, false);
                expectInputGradient(context, random, weight, rows, DType::F32, DType::F32, true);
            }
        }
    });
}

/// A device whose ops leave results for each other in scratch gets room for the weight in BF16, and says what that
/// costs.
TEST(MatmulInputGradient, APackedWeightIsExpandedForManyRows) {
    std::mt19937 random(13);
    DeviceTraits gpu;
    gpu.features.kernelScratch = true;
    const TestWeight nf4 = nf4Weight(random, 64, 128, true);
    const TestWeight mxfp4 = mxfp4Weight(random, 64, 128);
    for (const WeightView& weight : {nf4.view, mxfp4.view}) {
        for (const std::int64_t rows : {16, 17}) {
            for (const DType type : {DType::BF16, DType::F32}) {
                TestTensor gradOut(type, Shape{rows, 64}), gradX(type, Shape{rows, 128});
                const MatmulInputGradient op{gradOut, weight, gradX, false, {}};
                const std::uint64_t expected = rows > 16 && type == DType::BF16 ? 64 * 128 * 2 : 0;
                EXPECT_EQ(scratch(op, gpu), expected);
                EXPECT_EQ(scratch(op, DeviceTraits{}), 0U);
                EXPECT_EQ(cost(op, gpu).bytesRead, cost(op, DeviceTraits{}).bytesRead + expected);
                EXPECT_EQ(cost(op, gpu).launches, expected > 0 ? 2U : 1U);
                Matmul forward;
                forward.x = gradX;
                forward.weight = weight;
                forward.out = gradOut;
                EXPECT_EQ(scratch(forward, gpu), expected);
                EXPECT_EQ(scratch(forward, DeviceTraits{}), 0U);
            }
        }
    }
}

TEST(MatmulInputGradient, DoubleKeepsDoublePrecision) {
    std::mt19937 random(3);
    CpuContext context(2);
    for (const bool transposed : {false, true}) {
        const TestWeight weight = denseWeight(random, DType::F64, 301, 9, transposed);
        expectInputGradient(context, random, weight, 3, DType::F64, DType::F64, transposed);
    }
}

TEST(MatmulWeightGradient, AgainstDouble) {
    std::mt19937 random(4);
    testing::forEachSimd([&](CpuContext& context) {
        for (const Sizes& sizes : kSizes) {
            SCOPED_TRACE(::testing::Message() << sizes.rows << " rows, in " << sizes.in << ", out " << sizes.out);
            for (const DType type : {DType::BF16, DType::F16, DType::F32}) {
                expectWeightGradient(context, random, sizes, type, type, type, sizes.rows % 2 == 0);
                expectWeightGradient(context, random, sizes, type, type, DType::F32, sizes.rows % 2 != 0);
            }
            expectWeightGradient(context, random, sizes, DType::BF16, DType::F32, DType::F16, true);
        }
    });
}

TEST(MatmulWeightGradient, DoubleKeepsDoublePrecision) {
    std::mt19937 random(5);
    CpuContext context(2);
    for (const bool accumulate : {false, true}) {
        expectWeightGradient(context, random, {301, 9, 7}, DType::F64, DType::F64, DType::F64, accumulate);
        expectWeightGradient(context, random, {301, 9, 7}, DType::BF16, DType::F64, DType::F32, accumulate);
    }
}

TEST(MatmulWeightGradient, NoRowsGiveZeroOrLeaveWhatIsThere) {
    std::mt19937 random(6);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        expectWeightGradient(context, random, {0, 40, 33}, type, type, type, false);
        expectWeightGradient(context, random, {0, 40, 33}, type, type, type, true);
        TestTensor gradWeight(type, Shape{33, 40});
        const TensorView x{nullptr, type, Shape{0, 40}, 0};
        const TensorView gradOut{nullptr, type, Shape{0, 33}, 0};
        testing::runOp(context, MatmulWeightGradient{x, gradOut, gradWeight, false});
        EXPECT_EQ(gradWeight.values(), std::vector<double>(33 * 40, 0.0));
    }
}

TEST(MatmulInputGradient, ZeroRows) {
    std::mt19937 random(7);
    CpuContext context(2);
    const TestWeight dense = denseWeight(random, DType::BF16, 8, 32, false);
    const TestWeight mxfp4 = mxfp4Weight(random, 8, 32);
    const TestWeight nf4 = nf4Weight(random, 8, 64, false);
    for (const WeightView& weight : {dense.view, mxfp4.view, nf4.view}) {
        for (const bool accumulate : {false, true}) {
            const TensorView gradOut{nullptr, DType::F32, Shape{0, 8}, 0};
            const TensorView gradX{nullptr, DType::F32, Shape{0, weight.inFeatures()}, 0};
            testing::runOp(context, MatmulInputGradient{gradOut, weight, gradX, accumulate, {}});
        }
    }
}

/// The same op on one thread and on four: equal to the last bit. `output` is what the op writes.
template <class Op> void expectSameOnFourThreads(const Op& op, TestTensor& output) {
    const std::vector<double> before = output.values();
    CpuContext one(1), four(4);
    testing::runOp(one, op);
    const std::vector<unsigned char> expected = output.storage();
    output.fill(before);
    testing::runOp(four, op);
    EXPECT_EQ(output.storage(), expected);
}

TEST(MatmulGradients, ThreadsChangeNoBit) {
    std::mt19937 random(8);
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        for (const std::int64_t rows : {5, 300}) {
            constexpr std::int64_t kIn = 416, kOut = 331;
            TestTensor x(type, Shape{rows, kIn}), gradOut(type, Shape{rows, kOut});
            TestTensor gradX(type, Shape{rows, kIn}), gradWeight(type, Shape{kOut, kIn});
            for (TestTensor* tensor : {&x, &gradOut, &gradX, &gradWeight}) {
                tensor->fillNormal(random);
            }
            const TestWeight dense = denseWeight(random, type, kOut, kIn, false);
            expectSameOnFourThreads(MatmulInputGradient{gradOut, dense.view, gradX, true, {}}, gradX);
            expectSameOnFourThreads(MatmulWeightGradient{x, gradOut, gradWeight, true}, gradWeight);
            if (type != DType::F64) {
                const TestWeight mxfp4 = mxfp4Weight(random, kOut, kIn);
                expectSameOnFourThreads(MatmulInputGradient{gradOut, mxfp4.view, gradX, false, {}}, gradX);
                TestTensor wide(type, Shape{rows, 448});
                const TestWeight nf4 = nf4Weight(random, kOut, 448, true);
                expectSameOnFourThreads(MatmulInputGradient{gradOut, nf4.view, wide, false, {}}, wide);
            }
        }
    }
}

/// Both are linear, so each is the adjoint of Matmul in one of its inputs: <gradOut, x W^T> = <gradX, x> = <gradWeight,
/// W>.
TEST(MatmulGradients, AreTheAdjointsOfMatmul) {
    std::mt19937 random(9);
    CpuContext context(2);
    const TestWeight weight = denseWeight(random, DType::F64, 21, 34, false);
    TestTensor x(DType::F64, Shape{13, 34}), out(DType::F64, Shape{13, 21}), gradOut(DType::F64, Shape{13, 21});
    TestTensor gradX(DType::F64, Shape{13, 34}), gradWeight(DType::F64, Shape{21, 34});
    x.fillNormal(random);
    gradOut.fillNormal(random);
    Matmul forward;
    forward.x = x;
    forward.weight = weight.view;
    forward.out = out;
    testing::runOp(context, forward);
    testing::runOp(context, MatmulInputGradient{gradOut, weight.view, gradX, false, {}});
    testing::runOp(context, MatmulWeightGradient{x, gradOut, gradWeight, false});
    const auto inner = [](const std::vector<double>& a, const std::vector<double>& b) {
        double sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            sum += a[i] * b.at(i);
        }
        return sum;
    };
    const double expected = inner(gradOut.values(), out.values());
    EXPECT_NEAR(inner(gradX.values(), x.values()), expected, 1e-10);
    EXPECT_NEAR(inner(gradWeight.values(), weight.values), expected, 1e-10);
}

TEST(MatmulGradients, CostCountsEachOperandOnce) {
    std::mt19937 random(10);
    const TestWeight weight = mxfp4Weight(random, 64, 96);
    TestTensor x(DType::BF16, Shape{5, 96}), gradOut(DType::BF16, Shape{5, 64});
    TestTensor gradX(DType::F32, Shape{5, 96}), gradWeight(DType::F32, Shape{64, 96});
    MatmulInputGradient input{gradOut, weight.view, gradX, false, {}};
    EXPECT_EQ(cost(input, DeviceTraits{}).bytesRead, 5U * 64 * 2 + 64 * 48 + 64 * 3);
    EXPECT_EQ(cost(input, DeviceTraits{}).bytesWritten, 5U * 96 * 4);
    EXPECT_EQ(cost(input, DeviceTraits{}).flops, 2U * 5 * 64 * 96);
    MatmulWeightGradient gradient{x, gradOut, gradWeight, true};
    EXPECT_EQ(cost(gradient, DeviceTraits{}).bytesRead, 5U * 96 * 2 + 5 * 64 * 2 + 64 * 96 * 4);
    EXPECT_EQ(cost(gradient, DeviceTraits{}).bytesWritten, 64U * 96 * 4);
    EXPECT_EQ(cost(gradient, DeviceTraits{}).flops, 2U * 5 * 64 * 96);
    EXPECT_EQ(scratch(gradient, DeviceTraits{}), 0U);
}

TEST(MatmulInputGradient, CheckNamesTheField) {
    std::mt19937 random(11);
    const TestWeight weight = denseWeight(random, DType::F32, 8, 16, false);
    TestTensor gradOut(DType::F32, Shape{20, 8}), gradX(DType::F32, Shape{20, 16});
    const MatmulInputGradient good{gradOut, weight.view, gradX, false, {}};
    check(good);
    MatmulInputGradient op = good;
    op.gradX.shape = Shape{19, 16};
    testing::expectCheckNames(op, "gradX");
    op = good;
    op.gradX.shape = Shape{20, 8};
    testing::expectCheckNames(op, "gradX");
    op = good;
    op.gradOut.shape = Shape{20, 16};
    testing::expectCheckNames(op, "gradOut");
    op = good;
    op.gradOut.dtype = DType::I32;
    testing::expectCheckNames(op, "gradOut");
    op = good;
    op.gradX.data = op.gradOut.data;
    testing::expectCheckNames(op, "gradX");
    op = good;
    op.gradX.data = op.weight.data.data;
    testing::expectCheckNames(op, "gradX");
    op = good;
    op.weight = WeightView{};
    testing::expectCheckNames(op, "weight");
    op = good;
    op.weight.shape = Shape{1, 8, 16};
    testing::expectCheckNames(op, "weight");
    op = good;
    op.gradOut.shape = Shape{2, 8};
    op.gradX.shape = Shape{2, 16};
    testing::expectCheckNames(op, "scratch");
    const TestWeight mxfp4 = mxfp4Weight(random, 8, 32);
    TestTensor wide(DType::F64, Shape{20, 8}), wideX(DType::F64, Shape{20, 32});
    testing::expectCheckNames(MatmulInputGradient{wide, mxfp4.view, wideX, false, {}}, "gradOut");
}

TEST(MatmulWeightGradient, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{20, 16}), gradOut(DType::F32, Shape{20, 8}), gradWeight(DType::F32, Shape{8, 16});
    const MatmulWeightGradient good{x, gradOut, gradWeight, false};
    check(good);
    MatmulWeightGradient op = good;
    op.gradOut.shape = Shape{19, 8};
    testing::expectCheckNames(op, "gradOut");
    op = good;
    op.gradWeight.shape = Shape{16, 8};
    testing::expectCheckNames(op, "gradWeight");
    op = good;
    op.x.dtype = DType::U8;
    testing::expectCheckNames(op, "x");
    op = good;
    op.x.shape = Shape{20 * 16};
    testing::expectCheckNames(op, "x");
    op = good;
    op.gradWeight.strides[0] = 15;
    testing::expectCheckNames(op, "gradWeight");
    op = good;
    op.gradWeight.data = op.x.data;
    testing::expectCheckNames(op, "gradWeight");
    op = good;
    op.gradWeight.data = op.gradOut.data;
    testing::expectCheckNames(op, "gradWeight");
}

} // namespace
} // namespace vitrine::kernels

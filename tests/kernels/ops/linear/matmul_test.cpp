// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul.h"

#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::denseWeight;
using testing::mxfp4Weight;
using testing::nf4Weight;
using testing::TestTensor;
using testing::TestWeight;

struct Case {
    std::int64_t rows, in, out;
    DType x, outType;
    bool bias, residual;
};

void expectProduct(CpuContext& context, std::mt19937& random, const TestWeight& weight, const Case& c) {
    TestTensor x(c.x, Shape{c.rows, c.in}, c.in + 3);
    TestTensor bias(DType::BF16, Shape{c.out});
    TestTensor residual(c.outType, Shape{c.rows, c.out});
    TestTensor out(c.outType, Shape{c.rows, c.out}, c.out + 7);
    x.fillNormal(random);
    bias.fillNormal(random);
    residual.fillNormal(random);
    Matmul op;
    op.x = x;
    op.weight = weight.view;
    op.out = out;
    if (c.bias) {
        op.bias = bias;
    }
    if (c.residual) {
        op.residual = residual;
    }
    testing::runOp(context, op);
    const std::vector<double> xs = x.values();
    const std::vector<double> biases = bias.values();
    const std::vector<double> residuals = residual.values();
    std::vector<double> expected;
    double largest = 1;
    for (std::int64_t r = 0; r < c.rows; ++r) {
        for (std::int64_t o = 0; o < c.out; ++o) {
            double sum = c.bias ? biases[static_cast<std::size_t>(o)] : 0;
            double magnitude = 0;
            for (std::int64_t i = 0; i < c.in; ++i) {
                const double term =
                    xs[static_cast<std::size_t>(r * c.in + i)] * weight.values[static_cast<std::size_t>(o * c.in + i)];
                sum += term;
                magnitude += std::fabs(term);
            }
            sum += c.residual ? residuals[static_cast<std::size_t>(r * c.out + o)] : 0;
            largest = std::max(largest, magnitude);
            expected.push_back(sum);
        }
    }
    testing::expectNear(out, expected, largest * 4e-7);
}

TEST(Matmul, DenseAgainstDouble) {
    std::mt19937 random(1);
    testing::forEachSimd([&](CpuContext& context) {
        for (const DType weightType : {DType::BF16, DType::F32, DType::F16}) {
            for (const bool transposed : {false, true}) {
                for (const auto& [rows, in, out] : {std::tuple{1, 1, 1},
                                                    {1, 130, 67},
                                                    {2, 33, 9},
                                                    {3, 64, 65},
                                                    {4, 257, 70},
                                                    {5, 96, 31},
                                                    {6, 47, 130},
                                                    {7, 31, 5},
                                                    {8, 300, 129},
                                                    {9, 77, 40},
                                                    {300, 521, 150}}) {
                    SCOPED_TRACE(std::string(simdName(context.simd())) + " rows " + std::to_string(rows));
                    const TestWeight weight = denseWeight(random, weightType, out, in, transposed);
                    expectProduct(context, random, weight, {rows, in, out, DType::BF16, DType::BF16, true, false});
                    expectProduct(context, random, weight,
                                  {rows, in, out, DType::F32, DType::F32, rows % 2 == 0, true});
                }
            }
        }
    });
}

TEST(Matmul, Mxfp4AgainstDouble) {
    std::mt19937 random(2);
    testing::forEachSimd([&](CpuContext& context) {
        for (const auto& [rows, in, out] : {std::tuple{1, 32, 1},
                                            {1, 2880, 67},
                                            {2, 96, 9},
                                            {3, 64, 65},
                                            {4, 160, 70},
                                            {5, 128, 31},
                                            {6, 224, 13},
                                            {7, 32, 5},
                                            {8, 320, 129},
                                            {9, 96, 40},
                                            {260, 544, 150}}) {
            const TestWeight weight = mxfp4Weight(random, out, in);
            expectProduct(context, random, weight, {rows, in, out, DType::BF16, DType::BF16, true, true});
            expectProduct(context, random, weight, {rows, in, out, DType::F32, DType::F32, false, false});
        }
    });
}

TEST(Matmul, Nf4AgainstDouble) {
    std::mt19937 random(14);
    testing::forEachSimd([&](CpuContext& context) {
        for (const bool packedScales : {false, true}) {
            for (const auto& [rows, in, out] :
                 {std::tuple{1, 64, 1}, {1, 2880, 67}, {3, 128, 65}, {8, 320, 129}, {9, 192, 40}, {260, 576, 150}}) {
                const TestWeight weight = nf4Weight(random, out, in, packedScales);
                expectProduct(context, random, weight, {rows, in, out, DType::BF16, DType::BF16, true, true});
                expectProduct(context, random, weight, {rows, in, out, DType::F32, DType::F32, false, false});
                expectProduct(context, random, weight, {rows, in, out, DType::F64, DType::F64, false, true});
            }
        }
    });
}

TEST(Matmul, IntegersAndFp8AgainstDouble) {
    std::mt19937 random(15);
    testing::forEachSimd([&](CpuContext& context) {
        for (const auto& [rows, in, out] :
             {std::tuple{1, 64, 1}, {1, 2880, 67}, {3, 100, 130}, {9, 192, 40}, {260, 576, 150}}) {
            for (const TestWeight& weight : testing::groupedWeights(random, out, in)) {
                expectProduct(context, random, weight, {rows, in, out, DType::BF16, DType::BF16, true, true});
                expectProduct(context, random, weight, {rows, in, out, DType::F32, DType::F32, false, false});
            }
        }
    });
}

TEST(Matmul, DoubleRowsKeepDoublePrecision) {
    std::mt19937 random(3);
    CpuContext context(2);
    for (const bool transposed : {false, true}) {
        const TestWeight weight = denseWeight(random, DType::F64, 9, 301, transposed);
        TestTensor x(DType::F64, Shape{3, 301});
        TestTensor out(DType::F64, Shape{3, 9});
        x.fillNormal(random);
        Matmul op;
        op.x = x;
        op.weight = weight.view;
        op.out = out;
        testing::runOp(context, op);
        std::vector<double> expected;
        const std::vector<double> xs = x.values();
        for (std::size_t r = 0; r < 3; ++r) {
            for (std::size_t o = 0; o < 9; ++o) {
                double sum = 0;
                for (std::size_t i = 0; i < 301; ++i) {
                    sum += xs[r * 301 + i] * weight.values[o * 301 + i];
                }
                expected.push_back(sum);
            }
        }
        testing::expectNear(out, expected, 1e-12);
    }
}

/// Products of a piece of the rows are, to the last bit, those rows of the product of all.
void expectRowsStandAlone(CpuContext& context, std::mt19937& random, const TestWeight& weight, DType type) {
    const std::int64_t in = weight.view.inFeatures(), out = weight.view.outFeatures();
    constexpr std::int64_t kRows = 107; // tiles of 48, 48 and 11 rows
    TestTensor x(type, Shape{kRows, in});
    x.fillNormal(random);
    Matmul op;
    op.x = x;
    op.weight = weight.view;
    TestTensor all(DType::F32, Shape{kRows, out});
    op.out = all;
    testing::runOp(context, op);
    const std::vector<double> together = all.values();
    std::int64_t row = 0;
    for (const std::int64_t rows : {1, 2, 3, 8, 9, 50, 1, 33}) {
        TestTensor some(DType::F32, Shape{rows, out});
        op.x = sliceRows(x, row, row + rows);
        op.out = some;
        testing::runOp(context, op);
        const std::vector<double> alone = some.values();
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * out))
            << simdName(context.simd()) << ", " << rows << " rows from " << row << " of (" << out << ", " << in << ")";
        row += rows;
    }
    ASSERT_EQ(row, kRows);
}

TEST(Matmul, ARowDoesNotDependOnItsNeighbours) {
    std::mt19937 random(4);
    testing::forEachSimd([&](CpuContext& context) {
        for (const std::int64_t in : {32, 96, 544, 1184}) {
            expectRowsStandAlone(context, random, mxfp4Weight(random, 70, in), in == 96 ? DType::F32 : DType::BF16);
        }
        for (const std::int64_t in : {64, 576, 1216}) {
            expectRowsStandAlone(context, random, nf4Weight(random, 70, in, in == 576), DType::BF16);
        }
        for (const std::int64_t in : {64, 516, 1216}) {
            for (const TestWeight& weight : testing::groupedWeights(random, 70, in)) {
                expectRowsStandAlone(context, random, weight, DType::BF16);
            }
        }
        for (const DType type : {DType::BF16, DType::F16, DType::F32}) {
            for (const std::int64_t in : {5, 128, 515, 1030}) {
                for (const bool transposed : {false, true}) {
                    expectRowsStandAlone(context, random, denseWeight(random, type, 133, in, transposed),
                                         in == 128 ? DType::BF16 : DType::F32);
                }
            }
        }
    });
}

TEST(Matmul, ScaleAndAdapterAgainstDouble) {
    std::mt19937 random(9);
    testing::forEachSimd([&](CpuContext& context) {
        for (const auto& [rows, packed] : {std::pair{1, false}, {5, true}, {40, false}, {70, true}}) {
            for (const bool adapted : {false, true}) {
                constexpr std::int64_t kIn = 96, kOut = 37, kRank = 8;
                const TestWeight weight =
                    packed ? mxfp4Weight(random, kOut, kIn) : denseWeight(random, DType::BF16, kOut, kIn, rows == 40);
                TestTensor a(DType::F32, Shape{kRank, kIn}), b(DType::F32, Shape{kOut, kRank});
                TestTensor x(DType::F32, Shape{rows, kIn}, kIn + 3), bias(DType::F32, Shape{kOut});
                TestTensor out(DType::F32, Shape{rows, kOut}, kOut + 7);
                for (TestTensor* tensor : {&a, &b, &x, &bias, &out}) {
                    tensor->fillNormal(random);
                }
                const std::vector<double> as = a.values(), bs = b.values(), xs = x.values(), biases = bias.values();
                std::vector<double> expected = out.values();
                for (std::size_t i = 0; i < expected.size(); ++i) {
                    const std::size_t row = i / kOut, o = i % kOut;
                    expected[i] += biases[o];
                    for (std::size_t k = 0; k < kIn; ++k) {
                        double product = 0.5 * weight.values[o * kIn + k];
                        for (std::size_t r = 0; adapted && r < kRank; ++r) {
                            product += 0.25 * bs[o * kRank + r] * as[r * kIn + k];
                        }
                        expected[i] += xs[row * kIn + k] * product;
                    }
                }
                Matmul op;
                op.x = x;
                op.weight = weight.view;
                op.bias = bias;
                op.residual = out;
                op.out = out;
                op.scale = 0.5F;
                op.adapter = adapted ? AdapterView{a, b, 0.25F} : AdapterView{};
                testing::runOp(context, op);
                testing::expectNear(out, expected, 1e-3);
            }
        }
    });
}

TEST(Matmul, AdapterInDoubleKeepsDoublePrecision) {
    std::mt19937 random(10);
    CpuContext context(2);
    const TestWeight weight = denseWeight(random, DType::F64, 9, 31, false);
    TestTensor a(DType::F64, Shape{4, 31}), b(DType::F64, Shape{9, 4}), x(DType::F64, Shape{3, 31});
    TestTensor out(DType::F64, Shape{3, 9});
    for (TestTensor* tensor : {&a, &b, &x}) {
        tensor->fillNormal(random);
    }
    Matmul op;
    op.x = x;
    op.weight = weight.view;
    op.adapter = {a, b, 0.5F};
    op.out = out;
    testing::runOp(context, op);
    const std::vector<double> as = a.values(), bs = b.values(), xs = x.values();
    std::vector<double> expected(27, 0.0);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        for (std::size_t k = 0; k < 31; ++k) {
            double product = weight.values[i % 9 * 31 + k];
            for (std::size_t r = 0; r < 4; ++r) {
                product += 0.5 * bs[i % 9 * 4 + r] * as[r * 31 + k];
            }
            expected[i] += xs[i / 9 * 31 + k] * product;
        }
    }
    testing::expectNear(out, expected, 1e-12);
}

TEST(Matmul, ResidualMayBeTheOutput) {
    std::mt19937 random(5);
    CpuContext context(2);
    const TestWeight weight = denseWeight(random, DType::F32, 33, 20, false);
    for (const std::int64_t rows : {1, 40}) {
        TestTensor x(DType::F32, Shape{rows, 20});
        TestTensor separate(DType::F32, Shape{rows, 33});
        TestTensor shared(DType::F32, Shape{rows, 33});
        x.fillNormal(random);
        shared.fillNormal(random);
        TestTensor residual(DType::F32, Shape{rows, 33});
        residual.fill(shared.values());
        Matmul op;
        op.x = x;
        op.weight = weight.view;
        op.residual = residual;
        op.out = separate;
        testing::runOp(context, op);
        op.residual = shared;
        op.out = shared;
        testing::runOp(context, op);
        EXPECT_EQ(separate.values(), shared.values());
    }
}

TEST(Matmul, ZeroRows) {
    std::mt19937 random(6);
    CpuContext context(2);
    const TestWeight weight = denseWeight(random, DType::BF16, 8, 16, false);
    Matmul op;
    op.x = TensorView{nullptr, DType::F32, Shape{0, 16}, 0};
    op.weight = weight.view;
    op.out = TensorView{nullptr, DType::F32, Shape{0, 8}, 0};
    testing::runOp(context, op);
}

TEST(Matmul, CostCountsTheWholeWeightOnce) {
    std::mt19937 random(7);
    const TestWeight weight = mxfp4Weight(random, 64, 96);
    TestTensor x(DType::BF16, Shape{2, 96});
    TestTensor out(DType::BF16, Shape{2, 64});
    Matmul op;
    op.x = x;
    op.weight = weight.view;
    op.out = out;
    const Cost cost = kernels::cost(op, DeviceTraits{});
    EXPECT_EQ(cost.bytesRead, 2U * 96 * 2 + 64 * 48 + 64 * 3);
    EXPECT_EQ(cost.bytesWritten, 2U * 64 * 2);
    EXPECT_EQ(cost.flops, 2U * 2 * 64 * 96);
}

TEST(Matmul, CheckNamesTheField) {
    std::mt19937 random(8);
    const TestWeight weight = denseWeight(random, DType::F32, 8, 16, false);
    TestTensor x(DType::F32, Shape{20, 16});
    TestTensor out(DType::F32, Shape{20, 8});
    Matmul good;
    good.x = x;
    good.weight = weight.view;
    good.out = out;
    check(good);
    Matmul op = good;
    op.out.shape = Shape{20, 9};
    testing::expectCheckNames(op, "out");
    op = good;
    op.x.dtype = DType::I32;
    testing::expectCheckNames(op, "x");
    op = good;
    op.bias = x;
    testing::expectCheckNames(op, "bias");
    op = good;
    op.weight = WeightView{};
    testing::expectCheckNames(op, "weight");
    op = good;
    op.out.data = op.x.data;
    testing::expectCheckNames(op, "out");
    op = good;
    op.x.shape = Shape{2, 16};
    op.out.shape = Shape{2, 8};
    testing::expectCheckNames(op, "scratch");
}

} // namespace
} // namespace vitrine::kernels

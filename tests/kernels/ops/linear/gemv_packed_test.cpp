// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/ops/linear/matmul.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::fp8Weight;
using testing::integerWeight;
using testing::TestTensor;
using testing::TestWeight;

/// The rows of the unit matrix that pick these columns of a weight.
TestTensor unitRows(const std::vector<std::int64_t>& columns, std::int64_t in) {
    TestTensor x(DType::F32, Shape{std::ssize(columns), in});
    auto* row = static_cast<const TensorView&>(x).as<float>();
    std::fill(row, row + std::ssize(columns) * in, 0.0F);
    for (const std::int64_t column : columns) {
        row[column] = 1;
        row += in;
    }
    return x;
}

/// The columns that x picks, `together` at a time.
std::vector<double> columnsOf(CpuContext& context, const TestWeight& weight, const TensorView& x,
                              std::int64_t together) {
    const std::int64_t rows = x.shape[0], out = weight.view.outFeatures();
    std::vector<double> found;
    for (std::int64_t row = 0; row < rows; row += together) {
        const std::int64_t end = std::min(rows, row + together);
        TestTensor y(DType::F32, Shape{end - row, out});
        Matmul op;
        op.x = sliceRows(x, row, end);
        op.weight = weight.view;
        op.out = y;
        testing::runOp(context, op);
        const std::vector<double> part = y.values();
        found.insert(found.end(), part.begin(), part.end());
    }
    return found;
}

/// Inputs at the ends of vectors, groups and chunks of scales, and some between.
std::vector<std::int64_t> someColumns(std::int64_t in) {
    std::vector<std::int64_t> columns;
    for (std::int64_t k = 0; k < in; k += k < 130 ? 1 : 397) {
        columns.push_back(k);
    }
    for (const std::int64_t k : {in - 33, in - 32, in - 1, std::int64_t{4095}, std::int64_t{4096}}) {
        columns.push_back(std::min(k, in - 1));
    }
    return columns;
}

TEST(PackedRows, WeightsAreThoseOfTheTableToTheLastBit) {
    std::mt19937 random(3);
    for (const std::int64_t in : {160, 4288}) {
        constexpr std::int64_t kOut = 7;
        std::vector<TestWeight> weights = testing::groupedWeights(random, kOut, in);
        weights.push_back(integerWeight(random, kOut, in, {4, 96, DType::F16, true, false}));
        weights.push_back(integerWeight(random, kOut, in, {4, in, DType::BF16, false, false}));
        weights.push_back(integerWeight(random, kOut, in, {8, 160, DType::BF16, true, false}));
        weights.push_back(integerWeight(random, kOut, in, {8, 48, DType::F32, true, false}));
        weights.push_back(fp8Weight(random, kOut, in, 3, 32));
        const std::vector<std::int64_t> columns = someColumns(in);
        const TestTensor x = unitRows(columns, in);
        testing::forEachSimd([&](CpuContext& context) {
            for (const TestWeight& weight : weights) {
                for (const std::int64_t together : {1, 8, 100}) {
                    const std::vector<double> found = columnsOf(context, weight, x, together);
                    for (std::size_t i = 0; i < found.size(); ++i) {
                        const auto column = static_cast<std::size_t>(columns[i / kOut]);
                        ASSERT_EQ(found[i], weight.values[i % kOut * static_cast<std::size_t>(in) + column])
                            << simdName(context.simd()) << ", weight " << &weight - weights.data() << ", column "
                            << column << " of " << in << ", " << together << " rows together";
                    }
                }
            }
        });
    }
}

TEST(PackedRows, AnFp8ElementThatIsNoNumberGivesNone) {
    std::mt19937 random(4);
    TestWeight weight = fp8Weight(random, 3, 96, 1, 96);
    auto* const stored = static_cast<const TensorView&>(weight.blocks).as<std::uint8_t>();
    stored[40] = 0x7F;
    stored[2 * 96 + 95] = 0xFF;
    const TestTensor x = unitRows({1, 2, 3, 4, 5, 6, 7, 8, 9}, 96);
    testing::forEachSimd([&](CpuContext& context) {
        for (const std::int64_t together : {1, 9}) {
            const std::vector<double> found = columnsOf(context, weight, x, together);
            for (std::size_t i = 0; i < found.size(); ++i) {
                EXPECT_EQ(std::isnan(found[i]), i % 3 != 1) << simdName(context.simd()) << ", output " << i % 3;
            }
        }
    });
}

} // namespace
} // namespace vitrine::kernels

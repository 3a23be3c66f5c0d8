// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/packed_rows.h"

#include <gtest/gtest.h>

#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;
using testing::TestWeight;

constexpr std::int64_t kMatrixRows = 96;

bool takes(const TestWeight& weight) {
    return takesPackedRows(DType::BF16, weight.view, DType::BF16);
}

TEST(PackedRowsProduct, Fp8WithScalesOfEveryKindOfBlock) {
    std::mt19937 random(1);
    EXPECT_TRUE(takes(testing::fp8Weight(random, kMatrixRows, 416, 128, 128)));
    EXPECT_TRUE(takes(testing::fp8Weight(random, kMatrixRows, 416, 1, 416))) << "rows";
    EXPECT_TRUE(takes(testing::fp8Weight(random, kMatrixRows, 416, kMatrixRows, 416))) << "the whole matrix";
    EXPECT_TRUE(takes(testing::fp8Weight(random, kMatrixRows, 416, 40, 256)));
    EXPECT_FALSE(takes(testing::fp8Weight(random, kMatrixRows, 416, 1, 96))) << "96 inputs do not fit steps of 128";
    EXPECT_FALSE(takes(testing::fp8Weight(random, kMatrixRows, 400, 128, 128))) << "inputs are no whole 32s";
}

TEST(PackedRowsProduct, Int4WithoutAnOrder) {
    std::mt19937 random(2);
    EXPECT_TRUE(takes(testing::integerWeight(random, kMatrixRows, 416, {4, 32, DType::F16, true, false})));
    EXPECT_FALSE(takes(testing::integerWeight(random, kMatrixRows, 416, {4, 32, DType::F16, true, true})));
    EXPECT_FALSE(takes(testing::integerWeight(random, kMatrixRows, 416, {8, 32, DType::F16, true, false}))) << "INT8";
}

TEST(PackedRowsProduct, RowsAreBf16AndResultsNoHalves) {
    std::mt19937 random(3);
    const TestWeight weight = testing::fp8Weight(random, kMatrixRows, 128, 128, 128);
    EXPECT_TRUE(takesPackedRows(DType::BF16, weight.view, DType::F32));
    EXPECT_FALSE(takesPackedRows(DType::BF16, weight.view, DType::F16));
    EXPECT_FALSE(takesPackedRows(DType::F32, weight.view, DType::F32));
}

TEST(PackedRowsProduct, OfAnOpAllRowsOrNone) {
    std::mt19937 random(4);
    const TestWeight weight = testing::fp8Weight(random, kMatrixRows, 128, 128, 128);
    for (const std::int64_t rows : {1, 64, 65}) {
        const TestTensor x(DType::BF16, Shape{rows, 128}), out(DType::BF16, Shape{rows, kMatrixRows});
        Matmul op;
        op.x = x.view();
        op.weight = weight.view;
        op.out = out.view();
        EXPECT_EQ(takesPackedRows(op), rows <= kMaxPackedRows) << rows << " rows";
        op.scale = 2;
        EXPECT_FALSE(takesPackedRows(op)) << "the kernel has no factor";
    }
}

} // namespace
} // namespace vitrine::kernels

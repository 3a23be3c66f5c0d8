// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/expanded_weight.h"

#include <gtest/gtest.h>

#include "kernels/core/device_traits.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::IntegerForm;
using testing::TestTensor;
using testing::TestWeight;

constexpr std::int64_t kRowsOfWeight = 64, kInputs = 512;

/// Scratch for `rows` BF16 rows times a weight on a device of the architecture.
std::uint64_t scratchFor(const TestWeight& weight, std::int64_t rows, std::string_view arch) {
    DeviceTraits traits;
    traits.features = featuresOf(arch);
    const TestTensor x(DType::BF16, Shape{rows, kInputs}), out(DType::BF16, Shape{rows, kRowsOfWeight});
    Matmul op;
    op.x = x.view();
    op.weight = weight.view;
    op.out = out.view();
    return expandedScratch(op, traits);
}

TEST(ExpandedWeight, ManyRowsTakeTheMatrixInBf16) {
    std::mt19937 random(1);
    const TestWeight int8 = testing::integerWeight(random, kRowsOfWeight, kInputs, {8, 128, DType::BF16, false, false});
    EXPECT_EQ(scratchFor(int8, 16, "sm_90a"), 0U);
    EXPECT_EQ(scratchFor(int8, 17, "sm_90a"), kRowsOfWeight * kInputs * 2U);
    EXPECT_EQ(scratchFor(int8, 17, "cpu-avx2"), 0U) << "the CPU expands a piece at a time";
}

TEST(ExpandedWeight, FewRowsOfInt4AndFp8AreMultipliedAsStored) {
    std::mt19937 random(3);
    for (const auto& [rowGroup, group] : {std::pair<std::int64_t, std::int64_t>{32, 128}, {1, kInputs}}) {
        const TestWeight fp8 = testing::fp8Weight(random, kRowsOfWeight, kInputs, rowGroup, group);
        EXPECT_EQ(scratchFor(fp8, 64, "sm_90a"), 0U);
        EXPECT_EQ(scratchFor(fp8, 65, "sm_90a"), kRowsOfWeight * kInputs * 2U);
    }
    const TestWeight odd = testing::fp8Weight(random, kRowsOfWeight, kInputs, 1, 96);
    EXPECT_EQ(scratchFor(odd, 64, "sm_90a"), kRowsOfWeight * kInputs * 2U) << "no kernel takes groups of 96";
    const TestWeight int4 = testing::integerWeight(random, kRowsOfWeight, kInputs, {4, 32, DType::BF16, true, false});
    EXPECT_EQ(scratchFor(int4, 64, "sm_80"), 0U);
    EXPECT_EQ(scratchFor(int4, 65, "sm_80"), kRowsOfWeight * kInputs * 2U);
}

TEST(ExpandedWeight, Int4StaysAsItIsWhereTilesOfItAreMultiplied) {
    std::mt19937 random(2);
    const TestWeight plain = testing::integerWeight(random, kRowsOfWeight, kInputs, {4, 32, DType::BF16, true, false});
    EXPECT_EQ(scratchFor(plain, 512, "sm_90a"), 0U);
    EXPECT_EQ(scratchFor(plain, 512, "sm_80"), kRowsOfWeight * kInputs * 2U);
    const TestWeight ordered = testing::integerWeight(random, kRowsOfWeight, kInputs, {4, 32, DType::BF16, true, true});
    EXPECT_EQ(scratchFor(ordered, 512, "sm_90a"), kRowsOfWeight * kInputs * 2U) << "no kernel takes an order of inputs";
}

} // namespace
} // namespace vitrine::kernels

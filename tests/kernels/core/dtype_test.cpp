// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/dtype.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrine::kernels {
namespace {

TEST(DType, NamesOfSafetensorsGoBothWays) {
    for (int i = 1; i <= static_cast<int>(DType::Nf4); ++i) {
        const auto dtype = static_cast<DType>(i);
        EXPECT_EQ(dtypeFromSafetensors(safetensorsName(dtype)), dtype) << i;
        EXPECT_FALSE(dtypeName(dtype).empty());
    }
    EXPECT_EQ(safetensorsName(DType::F8E8M0), "F8_E8M0");
    EXPECT_EQ(dtypeName(DType::BF16), "bfloat16");
    EXPECT_FALSE(dtypeFromSafetensors("bf16"));
    EXPECT_FALSE(dtypeFromSafetensors(""));
}

TEST(DType, Sizes) {
    EXPECT_EQ(bytesOf(DType::BF16, 3), 6U);
    EXPECT_EQ(bytesOf(DType::C64, 2), 16U);
    EXPECT_EQ(bytesOf(DType::F4, 32), 16U);
    EXPECT_EQ(bytesOf(DType::F6E2M3, 4), 3U);
    EXPECT_EQ(bytesOf(DType::Bool, 0), 0U);
    EXPECT_EQ(bitsOf(DType::None), 0);
}

TEST(DType, RefusesPartsOfBytesAndOverflow) {
    EXPECT_THROW(bytesOf(DType::F4, 3), base::Internal);
    EXPECT_THROW(bytesOf(DType::F6E3M2, 2), base::Internal);
    EXPECT_THROW(bytesOf(DType::F32, -1), base::Internal);
    EXPECT_THROW(bytesOf(DType::F64, std::int64_t{1} << 60), base::Internal);
    EXPECT_THROW(bitsOf(static_cast<DType>(200)), base::Internal);
}

} // namespace
} // namespace vitrine::kernels

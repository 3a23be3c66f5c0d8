// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/stored_weight.h"

#include <array>
#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using kernels::WeightField;
using kernels::WeightFormat;

TEST(StoredWeight, Mxfp4HasBlocksAndScales) {
    const std::array<std::int64_t, 3> shape{4, 6, 96};
    const std::vector<StoredTensor> tensors = storedTensors(WeightFormat::Mxfp4, "w", shape);
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_EQ(tensors[0].name, "w_blocks");
    EXPECT_EQ(tensors[0].field, WeightField::Data);
    EXPECT_EQ(tensors[0].dtype, kernels::DType::U8);
    EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{4, 6, 3, 16}));
    EXPECT_EQ(tensors[1].name, "w_scales");
    EXPECT_EQ(tensors[1].field, WeightField::Scales);
    EXPECT_EQ(tensors[1].shape, (std::vector<std::int64_t>{4, 6, 3}));
}

TEST(StoredWeight, TheFormatIsFoundByMethodAndByFile) {
    EXPECT_EQ(formatOfMethod("mxfp4"), WeightFormat::Mxfp4);
    EXPECT_EQ(formatOfMethod("gptq"), std::nullopt);
    EXPECT_EQ(formatOfMethod("nf4"), std::nullopt) << "config.json names it in another field";
    EXPECT_EQ(formatOfMethod(""), std::nullopt);
    const auto only = [](const std::string& there) {
        return [there](const std::string& name) { return name == there; };
    };
    EXPECT_EQ(formatInFile("w", only("w_blocks")), WeightFormat::Mxfp4);
    EXPECT_EQ(formatInFile("w", only("w")), WeightFormat::Dense);
    EXPECT_EQ(formatInFile("w", only("w.quant_state.bitsandbytes__nf4")), WeightFormat::Nf4);
    EXPECT_EQ(formatInFile("w", only("v")), std::nullopt);
}

TEST(StoredWeight, OnlyScalesCanBeDamaged) {
    std::array<std::uint8_t, 3> bytes{1, 255, 3};
    const auto name = [] { return std::string("FILE: w_scales"); };
    try {
        checkStoredBytes(WeightFormat::Mxfp4, WeightField::Scales, kernels::DType::U8, bytes, name, 10);
        ADD_FAILURE() << "a scale that is no number was accepted";
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find("FILE: w_scales: scale 11 is 255"), std::string::npos) << error.message();
    }
    checkStoredBytes(WeightFormat::Mxfp4, WeightField::Data, kernels::DType::U8, bytes, name, 0);
    checkStoredBytes(WeightFormat::Dense, WeightField::Data, kernels::DType::U8, bytes, name, 0);
}

} // namespace
} // namespace vitrine::engine

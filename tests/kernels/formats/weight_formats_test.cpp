// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/weight_formats.h"

#include <array>
#include <gtest/gtest.h>
#include <set>

#include "base/error.h"

namespace vitrine::kernels {
namespace {

TEST(WeightFormats, NamesAndEndingsDiffer) {
    std::set<std::string_view> seen;
    for (const PackedFormat& format : packedFormats()) {
        EXPECT_TRUE(seen.insert(format.name).second) << format.name;
        EXPECT_TRUE(seen.insert(format.title).second) << format.title;
        EXPECT_NE(format.problem, nullptr);
        EXPECT_NE(format.expand, nullptr);
        EXPECT_EQ(&packedFormat(format.format), &format);
    }
    EXPECT_THROW(packedFormat(WeightFormat::Dense), base::Internal);
}

TEST(WeightFormats, APackedWeightKnowsItsShape) {
    std::array<std::uint8_t, 1> memory{};
    const TensorView blocks{memory.data(), DType::U8, Shape{4, 6, 3, 16}};
    const TensorView scales{memory.data(), DType::U8, Shape{4, 6, 3}};
    const WeightView weight = packedWeight(WeightFormat::Mxfp4, blocks, scales);
    EXPECT_EQ(weight.shape, (Shape{4, 6, 96}));
    EXPECT_EQ(weight.group, 32);
    EXPECT_EQ(weight.experts(), 4);
    EXPECT_EQ(weight.bytes(), 4U * 6 * 3 * 17);
    EXPECT_TRUE(weight.quantized());
}

TEST(WeightFormats, AnNf4WeightCountsAllItsTensors) {
    std::array<std::uint8_t, 1> memory{};
    const TensorView data{memory.data(), DType::U8, Shape{40, 96}};
    const TensorView codes{memory.data(), DType::U8, Shape{40, 3}};
    const TensorView codeScales{memory.data(), DType::F32, Shape{1}};
    WeightView weight = packedWeight(WeightFormat::Nf4, data, codes, codeScales, 0.5F);
    EXPECT_EQ(weight.shape, (Shape{40, 192}));
    EXPECT_EQ(weight.group, 64);
    EXPECT_EQ(weight.bytes(), 40U * 96 + 40 * 3 + 4);
    EXPECT_EQ(weight.scaleOffset, 0.5F);
    EXPECT_EQ(weight.field(WeightField::ScaleScales).shape, codeScales.shape);
}

TEST(WeightFormats, SayInWordsHowAWeightIsStored) {
    const auto words = [](WeightFormat format, std::int64_t group, std::int64_t rowGroup) {
        WeightView weight;
        weight.format = format;
        weight.group = group;
        weight.rowGroup = rowGroup;
        weight.shape = Shape{3, 256, 512};
        return weightFormatWords(weight, 256);
    };
    EXPECT_EQ(words(WeightFormat::Dense, 0, 1), "");
    EXPECT_EQ(words(WeightFormat::Mxfp4, 32, 1), "MXFP4");
    EXPECT_EQ(words(WeightFormat::Int4, 128, 1), "INT4, groups of 128");
    EXPECT_EQ(words(WeightFormat::Int8, 512, 1), "INT8, whole rows");
    const std::string fp8(packedFormat(WeightFormat::Fp8).title);
    EXPECT_EQ(words(WeightFormat::Fp8, 128, 128), fp8 + ", blocks of 128 x 128");
    EXPECT_EQ(words(WeightFormat::Fp8, 512, 256), fp8 + ", one scale");
}

TEST(WeightFormats, TensorsInMemoryAreKnownByNameAndType) {
    const PackedFormat& mxfp4 = packedFormat(WeightFormat::Mxfp4);
    EXPECT_EQ(packedFormatOf(DType::U8, "model.layers.0.mlp.experts.down_proj_blocks"), &mxfp4);
    EXPECT_EQ(packedFormatOf(DType::U8, "model.layers.0.mlp.experts.down_proj_scales"), &mxfp4);
    EXPECT_EQ(packedFormatOf(DType::F4, "anything"), &mxfp4);
    EXPECT_EQ(packedFormatOf(DType::Nf4, "anything"), &packedFormat(WeightFormat::Nf4));
    EXPECT_EQ(packedFormatOf(DType::U8, "model.layers.0.mlp.down_proj.weight.absmax"),
              &packedFormat(WeightFormat::Nf4));
    EXPECT_EQ(packedFormatOf(DType::U8, "load.staging"), nullptr);
    EXPECT_EQ(packedFormatOf(DType::BF16, "model.layers.0.mlp.experts.down_proj_scales"), nullptr);
}

} // namespace
} // namespace vitrine::kernels

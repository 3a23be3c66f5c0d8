// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/nf4_checkpoint.h"

#include <array>
#include <gtest/gtest.h>
#include <limits>

#include "base/error.h"
#include "kernels/formats/nf4_format.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::Shape;
using kernels::WeightField;

constexpr std::string_view kPlain =
    R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [96, 128]})";
constexpr std::string_view kNested =
    R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [300, 128], "nested_blocksize": 256,
        "nested_dtype": "float32", "nested_offset": 0.0625})";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string out(text);
    return out.replace(out.find(from), from.size(), to);
}

TEST(Nf4Checkpoint, PlainScalesAreFloats) {
    const Nf4State state = parseNf4State(kPlain, "FILE: w");
    EXPECT_EQ(state.out, 96);
    EXPECT_EQ(state.in, 128);
    EXPECT_FALSE(state.packedScales);
    const std::vector<StoredTensor> tensors = nf4StoredTensors("w.weight", state);
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_EQ(tensors[0].name, "w.weight");
    EXPECT_EQ(tensors[0].dtype, DType::U8);
    EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{6144, 1}));
    EXPECT_EQ(tensors[1].name, "w.weight.absmax");
    EXPECT_EQ(tensors[1].dtype, DType::F32);
    EXPECT_EQ(tensors[1].shape, (std::vector<std::int64_t>{192}));
}

TEST(Nf4Checkpoint, NestedScalesAreCodes) {
    const Nf4State state = parseNf4State(kNested, "FILE: w");
    EXPECT_TRUE(state.packedScales);
    EXPECT_EQ(state.scaleOffset, 0.0625F);
    const std::vector<StoredTensor> tensors = nf4StoredTensors("w", state);
    ASSERT_EQ(tensors.size(), 3U);
    EXPECT_EQ(tensors[1].dtype, DType::U8);
    EXPECT_EQ(tensors[1].shape, (std::vector<std::int64_t>{600}));
    EXPECT_EQ(tensors[2].name, "w.nested_absmax");
    EXPECT_EQ(tensors[2].field, WeightField::ScaleScales);
    EXPECT_EQ(tensors[2].shape, (std::vector<std::int64_t>{3}));
}

TEST(Nf4Checkpoint, TensorsInMemoryAreRowsOfTheMatrix) {
    const std::vector<StoredTensor> tensors = nf4StoredTensors("w", {300, 128, true, 0});
    ASSERT_EQ(tensors.size(), 3U);
    EXPECT_EQ(tensors[0].memoryShape, (Shape{300, 64}));
    EXPECT_EQ(tensors[1].memoryShape, (Shape{300, 2}));
    EXPECT_EQ(tensors[2].memoryShape, Shape{3});
}

TEST(Nf4Checkpoint, WhatIsDamagedIsRefusedWithItsName) {
    for (const std::string& text :
         {std::string("{"), std::string("[]"), replaced(kPlain, "[96, 128]", "[96]"),
          replaced(kPlain, "[96, 128]", "[-96, 128]"), replaced(kPlain, "[96, 128]", "[96.5, 128]"),
          replaced(kPlain, "[96, 128]", "[1000000000000, 64000000000]"), replaced(kNested, "0.0625", "\"much\""),
          replaced(kNested, "0.0625", "1e300")}) {
        try {
            parseNf4State(text, "FILE: w");
            ADD_FAILURE() << "accepted " << text;
        } catch (const base::BadInput& error) {
            EXPECT_EQ(error.message().find("FILE: w"), 0U) << error.message();
        }
    }
}

TEST(Nf4Checkpoint, OtherFormatsAndBlocksAreUnsupported) {
    for (const std::string& text :
         {replaced(kPlain, "nf4", "fp4"), replaced(kPlain, "64", "128"), replaced(kPlain, "[96, 128]", "[96, 100]"),
          replaced(kNested, "256", "128"), std::string("{}")}) {
        EXPECT_THROW(parseNf4State(text, "FILE: w"), base::Unsupported) << text;
    }
}

TEST(Nf4Checkpoint, MapsAndScalesAreChecked) {
    auto values = kernels::kNf4Values;
    checkNf4Map(values, "FILE: w.quant_map");
    values[3] = 0.5F;
    EXPECT_THROW(checkNf4Map(values, "FILE: w.quant_map"), base::BadInput);
    EXPECT_THROW(checkNf4Map({}, "FILE: w.quant_map"), base::BadInput);
    auto map = kernels::nf4ScaleMap();
    checkNf4ScaleMap(map, "FILE: w.nested_quant_map");
    map[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(checkNf4ScaleMap(map, "FILE: w.nested_quant_map"), base::BadInput);
    const std::array<float, 2> scales{1, std::numeric_limits<float>::infinity()};
    const auto name = [] { return std::string("FILE: w.absmax"); };
    checkNf4Scales(std::span(scales).first(1), name);
    EXPECT_THROW(checkNf4Scales(scales, name), base::BadInput);
}

} // namespace
} // namespace vitrine::engine

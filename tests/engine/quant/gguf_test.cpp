// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/gguf.h"

#include <array>
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/checkpoint/gguf_file.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/formats/weight_formats.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

using kernels::WeightField;
using kernels::WeightFormat;

class GgufBlocks : public ::testing::TestWithParam<const char*> {
protected:
    std::vector<std::uint8_t> bytesOf(std::string_view name) const {
        const GgufTensor* tensor = file_.header().tensor(name);
        std::vector<std::uint8_t> out(tensor->bytes);
        file_.read(*tensor, 0, out.data(), out.size());
        return out;
    }
    const GgufType& type() const { return *file_.header().tensor(GetParam())->type; }

    GgufFile file_{vitrine::test::fixture("gguf/blocks.gguf")};
};

TEST_P(GgufBlocks, AreToTheLastBitWhatTheGgufPackageMakes) {
    const std::vector<std::uint8_t> expected = bytesOf(std::string(GetParam()) + ".values");
    std::vector<float> values(expected.size() / sizeof(float));
    expandGguf(type(), bytesOf(GetParam()), values.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, expected.data() + i * sizeof bits, sizeof bits);
        const float reference = std::bit_cast<float>(bits);
        // The package has no negative zero where the code is one.
        ASSERT_TRUE(std::bit_cast<std::uint32_t>(values[i]) == bits || (values[i] == 0 && reference == 0))
            << i << ": " << values[i] << " and " << reference;
    }
}

TEST_P(GgufBlocks, ADamagedScaleIsFound) {
    std::vector<std::uint8_t> blocks = bytesOf(GetParam());
    EXPECT_EQ(damagedGgufBlock(type(), blocks), std::nullopt);
    // Both ends of the block: one of them is where the scale lies.
    std::fill_n(blocks.begin() + 2 * type().bytes, type().bytes, std::uint8_t{0xFF});
    EXPECT_EQ(damagedGgufBlock(type(), blocks), 2);
}

TEST_P(GgufBlocks, TensorsInMemoryAreKnownByTheirNames) {
    const std::array<std::int64_t, 2> shape{4, 512};
    const WeightPacking packing = ggufPacking(type());
    for (const StoredTensor& tensor : storedTensors(packing, "m.weight", shape)) {
        EXPECT_FALSE(tensor.converts);
        if (tensor.dtype == kernels::DType::U8) {
            EXPECT_EQ(kernels::packedFormatOf(tensor.dtype, tensor.name), &kernels::packedFormat(packing.format));
        }
    }
    const TensorLookup files{
        [&](const std::string& name) { return name == storedTensors(packing, "m.weight", shape)[0].name; }, {}, {}};
    const Quantization declared = ggufQuantization();
    EXPECT_EQ(packingInFile("m.weight", shape, &declared, files), packing);
    EXPECT_EQ(packingInFile("other.weight", shape, &declared, files), std::nullopt);
}

TEST_P(GgufBlocks, RowsAreWholeBlocks) {
    const std::array<std::int64_t, 2> shape{4, 528};
    EXPECT_THROW(storedTensors(ggufPacking(type()), "m.weight", shape), base::Unsupported);
}

INSTANTIATE_TEST_SUITE_P(Types, GgufBlocks,
                         ::testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4"));

TEST(GgufTypes, NumbersAndSizesAreThoseOfGgml) {
    EXPECT_EQ(ggufType(12)->name, "Q4_K");
    EXPECT_EQ(ggufType(30)->floats, kernels::DType::BF16);
    EXPECT_EQ(ggufType(4), nullptr) << "removed from ggml";
    EXPECT_EQ(ggufType(10)->supported(), false);
    EXPECT_EQ(ggufTypeNames(), "F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16, MXFP4");
}

TEST(GgufTypes, AFolderOfSafetensorsDoesNotHaveThem) {
    try {
        parseQuantization({{"quant_method", "gguf"}}, "config.json");
        FAIL();
    } catch (const base::Unsupported& error) {
        EXPECT_NE(error.message().find("give the file itself"), std::string::npos);
    }
}

} // namespace
} // namespace vitrine::engine

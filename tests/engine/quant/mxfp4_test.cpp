// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/mxfp4.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/formats/mxfp4_format.h"

namespace vitrine::engine {
namespace {

void dequantizeMxfp4(std::span<const std::uint8_t> blocks, std::span<const std::uint8_t> scales,
                     std::span<float> values) {
    kernels::expandMxfp4(blocks.data(), scales.data(), 0, static_cast<std::int64_t>(values.size()), values.data());
}

TEST(Mxfp4, EveryByteUnderEveryScale) {
    constexpr std::array<double, 8> kMagnitudes{0, 0.5, 1, 1.5, 2, 3, 4, 6};
    std::array<std::uint8_t, 16> block{};
    std::array<float, 32> values{};
    for (int scale = 0; scale < 255; ++scale) {
        const std::array<std::uint8_t, 1> scales{static_cast<std::uint8_t>(scale)};
        for (int first = 0; first < 256; first += 16) {
            for (int i = 0; i < 16; ++i) {
                block[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(first + i);
            }
            dequantizeMxfp4(block, scales, values);
            for (std::size_t i = 0; i < 32; ++i) {
                const int nibble = i % 2 == 0 ? block[i / 2] & 15 : block[i / 2] >> 4;
                const double sign = nibble < 8 ? 1 : -1;
                const double expected =
                    sign * std::ldexp(kMagnitudes[static_cast<std::size_t>(nibble & 7)], scale - 127);
                ASSERT_EQ(values[i], static_cast<float>(expected)) << scale << " " << nibble;
                ASSERT_EQ(std::signbit(values[i]), nibble >= 8);
            }
        }
    }
    const std::array<std::uint8_t, 1> nan{255};
    block.fill(0x21);
    dequantizeMxfp4(block, nan, values);
    EXPECT_TRUE(std::isnan(values[0]));
}

TEST(Mxfp4, ExampleOfTheFactSheet) {
    std::array<std::uint8_t, 16> block{0x21};
    std::array<float, 32> values{};
    dequantizeMxfp4(block, std::array<std::uint8_t, 1>{128}, values);
    EXPECT_EQ(values[0], 1.0F);
    EXPECT_EQ(values[1], 2.0F);
}

TEST(Mxfp4, QuantizingWhatIsRepresentableChangesNothing) {
    for (int scale : {1, 64, 127, 130, 250}) {
        std::array<std::uint8_t, 16> block{};
        for (std::size_t i = 0; i < 16; ++i) {
            block[i] = static_cast<std::uint8_t>(i << 4 | (15 - i)); // has a magnitude of 4 or more
        }
        std::array<float, 32> values{};
        dequantizeMxfp4(block, std::array<std::uint8_t, 1>{static_cast<std::uint8_t>(scale)}, values);
        std::array<std::uint8_t, 16> again{};
        std::array<std::uint8_t, 1> scales{};
        quantizeMxfp4(values, again, scales);
        EXPECT_EQ(again, block) << scale;
        EXPECT_EQ(scales[0], scale);
    }
}

TEST(Mxfp4, SharedExponentAndError) {
    std::vector<float> values(64);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = 0.01F * std::sin(static_cast<float>(i)) * (i < 32 ? 1.0F : 1000.0F);
    }
    std::vector<std::uint8_t> blocks(32);
    std::vector<std::uint8_t> scales(2);
    quantizeMxfp4(values, blocks, scales);
    EXPECT_EQ(scales[0], 127 - 7 - 2); // largest magnitude just under 0.01: floor(log2) = -7
    EXPECT_EQ(scales[1], 127 + 3 - 2); // just under 10
    std::vector<float> back(64);
    dequantizeMxfp4(blocks, scales, back);
    for (std::size_t i = 0; i < values.size(); ++i) {
        // Half the widest gap (4 to 6), or what is cut off above 6 (the largest is below 8).
        EXPECT_LE(std::fabs(back[i] - values[i]), 2 * kernels::mxfp4Scale(scales[i / 32])) << i;
    }
}

TEST(Mxfp4, ZerosTinyAndBadValues) {
    std::array<float, 32> values{};
    std::array<std::uint8_t, 16> block{};
    std::array<std::uint8_t, 1> scales{};
    quantizeMxfp4(values, block, scales);
    EXPECT_EQ(scales[0], 127);
    EXPECT_EQ(block, (std::array<std::uint8_t, 16>{}));
    values[3] = std::numeric_limits<float>::denorm_min();
    quantizeMxfp4(values, block, scales);
    EXPECT_EQ(scales[0], 0);
    values[3] = std::numeric_limits<float>::max();
    quantizeMxfp4(values, block, scales);
    EXPECT_EQ(scales[0], 252);
    values[3] = std::numeric_limits<float>::infinity();
    EXPECT_THROW(quantizeMxfp4(values, block, scales), base::BadInput);
    values[3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(quantizeMxfp4(values, block, scales), base::BadInput);
    std::array<std::uint8_t, 15> small{};
    EXPECT_THROW(quantizeMxfp4(values, small, scales), base::Internal);
}

TEST(Mxfp4, RefusesTheNanScale) {
    std::vector<std::uint8_t> scales(100, 120);
    checkMxfp4Scales(scales, "model.safetensors: x_scales");
    checkMxfp4Scales({}, "empty");
    scales[42] = 255;
    try {
        checkMxfp4Scales(scales, "model.safetensors: x_scales");
        FAIL() << "accepted";
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find("model.safetensors: x_scales: scale 42 is 255"), std::string::npos);
    }
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/mxfp4_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace vitrine::kernels {
namespace {

TEST(Mxfp4Format, RoundsToNearestEven) {
    EXPECT_EQ(nearestE2m1(0.25F), 0);
    EXPECT_EQ(nearestE2m1(0.26F), 1);
    EXPECT_EQ(nearestE2m1(0.75F), 2);
    EXPECT_EQ(nearestE2m1(1.25F), 2);
    EXPECT_EQ(nearestE2m1(1.75F), 4);
    EXPECT_EQ(nearestE2m1(2.5F), 4);
    EXPECT_EQ(nearestE2m1(3.5F), 6);
    EXPECT_EQ(nearestE2m1(5.0F), 6);
    EXPECT_EQ(nearestE2m1(5.1F), 7);
    EXPECT_EQ(nearestE2m1(100.0F), 7);
    EXPECT_EQ(nearestE2m1(-3.5F), 14);
    EXPECT_EQ(nearestE2m1(-0.0F), 8);
}

/// The rule with the functions of the C library.
std::uint8_t scaleByLogarithm(const std::array<float, 32>& values) {
    float largest = 0;
    for (const float value : values) {
        largest = std::max(largest, std::fabs(value));
    }
    return static_cast<std::uint8_t>(largest == 0 ? 127 : std::clamp(std::ilogb(largest) - 2 + 127, 0, 254));
}

TEST(Mxfp4Format, PacksGroupsOfEverySize) {
    std::mt19937 random(std::random_device{}());
    std::normal_distribution<float> normal;
    for (int exponent = -149; exponent < 126; ++exponent) {
        std::array<float, 32> values{};
        for (float& value : values) {
            value = std::ldexp(normal(random), exponent);
        }
        std::array<std::uint8_t, 16> blocks{};
        std::uint8_t scale = 0;
        packMxfp4(values.data(), 32, blocks.data(), &scale);
        ASSERT_EQ(scale, scaleByLogarithm(values)) << exponent;
        for (std::size_t i = 0; i < 32; ++i) {
            const int code = i % 2 == 0 ? blocks[i / 2] & 15 : blocks[i / 2] >> 4;
            ASSERT_EQ(code, nearestE2m1(std::ldexp(values[i], 127 - scale))) << exponent << ", element " << i;
        }
    }
}

TEST(Mxfp4Format, WhatIsNotFiniteIsNotANumberAfterwards) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        std::array<float, 64> values{};
        values.fill(3);
        values[40] = bad;
        std::array<std::uint8_t, 32> blocks{};
        std::array<std::uint8_t, 2> scales{};
        packMxfp4(values.data(), 64, blocks.data(), scales.data());
        expandMxfp4(blocks.data(), scales.data(), 0, 64, values.data());
        EXPECT_EQ(values[31], 3);
        EXPECT_TRUE(std::isnan(values[32]));
    }
}

} // namespace
} // namespace vitrine::kernels

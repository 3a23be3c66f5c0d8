// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/nf4_format.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"

namespace vitrine::kernels {
namespace {

struct Quantized {
    std::vector<std::uint8_t> data;
    std::vector<float> scales;
};

Quantized quantized(const std::vector<float>& values) {
    Quantized out{std::vector<std::uint8_t>(values.size() / 2), std::vector<float>(values.size() / kNf4Group)};
    quantizeNf4(values, out.data, out.scales);
    return out;
}

std::vector<float> normalValues(std::size_t count, float deviation) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> values(count);
    std::ranges::generate(values, [&] { return normal(random); });
    return values;
}

TEST(Nf4, EveryValueHasItsOwnCode) {
    for (std::size_t i = 0; i < kNf4Values.size(); ++i) {
        EXPECT_EQ(nearestNf4(kNf4Values[i]), i);
    }
    EXPECT_EQ(nearestNf4(-7), 0);
    EXPECT_EQ(nearestNf4(7), 15);
}

TEST(Nf4, BordersAreTheMiddlesAndBelongToTheLowerCode) {
    constexpr float kMiddles[15] = {-0.8480964004993439F,   -0.6106329262256622F,  -0.4599952697753906F,
                                    -0.33967943489551544F,  -0.23460740596055984F, -0.13791173323988914F,
                                    -0.045525018125772476F, 0.03979014977812767F,  0.1202552504837513F,
                                    0.2035212516784668F,    0.2920137718319893F,   0.3893125355243683F,
                                    0.5016634166240692F,    0.6427869200706482F,   0.8614784178118011F};
    for (std::size_t i = 0; i < 15; ++i) {
        EXPECT_NEAR(kMiddles[i], (kNf4Values[i] + kNf4Values[i + 1]) / 2, 1e-7F);
        EXPECT_EQ(nearestNf4(kMiddles[i]), i);
        EXPECT_EQ(nearestNf4(std::nextafter(kMiddles[i], 2.0F)), i + 1);
        EXPECT_EQ(nearestNf4(std::nextafter(kMiddles[i], -2.0F)), i);
    }
}

TEST(Nf4, HandComputedBytesHaveTheHighNibbleFirst) {
    std::vector<float> values(128, 0.0F);
    values[0] = 2;     // share 1: code 15
    values[1] = -2;    // share -1: code 0
    values[2] = 0.5F;  // share 0.25, nearest to 0.2461: code 10
    values[3] = -0.9F; // share -0.45, nearest to -0.3949: code 3
    values[127] = -0.25F;
    const Quantized packed = quantized(values);
    EXPECT_EQ(packed.scales, (std::vector<float>{2, 0.25F}));
    EXPECT_EQ(packed.data[0], 0xF0);
    EXPECT_EQ(packed.data[1], 0xA3);
    EXPECT_EQ(packed.data[2], 0x77);
    EXPECT_EQ(packed.data[63], 0x70);
    std::vector<float> back(128);
    Nf4Scales scales;
    scales.floats = packed.scales.data();
    expandNf4(packed.data.data(), scales, 0, 128, back.data());
    EXPECT_EQ(back[0], 2);
    EXPECT_EQ(back[1], -2);
    EXPECT_EQ(back[2], 2 * 0.24611230194568634F);
    EXPECT_EQ(back[3], 2 * -0.39491748809814453F);
    EXPECT_EQ(back[64], 0);
    EXPECT_EQ(back[127], -0.25F);
}

TEST(Nf4, RoundTripsWithinHalfTheWidestGap) {
    const std::vector<float> values = normalValues(64 * 300, 0.02F);
    const Quantized packed = quantized(values);
    std::vector<float> back(values.size());
    Nf4Scales scales;
    scales.floats = packed.scales.data();
    expandNf4(packed.data.data(), scales, 0, static_cast<std::int64_t>(back.size()), back.data());
    const float halfGap = (1.0F - 0.6961928009986877F) / 2;
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_LE(std::fabs(back[i] - values[i]), halfGap * packed.scales[i / 64] * 1.00001F);
    }
    EXPECT_EQ(quantized(back).data, packed.data) << "what is quantised already changes no more";
}

TEST(Nf4, PartsOfRowsAreThoseOfTheWhole) {
    const std::vector<float> values = normalValues(64 * 4, 1);
    const Quantized packed = quantized(values);
    Nf4Scales scales;
    scales.floats = packed.scales.data();
    std::vector<float> whole(values.size()), part(100);
    expandNf4(packed.data.data(), scales, 0, 256, whole.data());
    expandNf4(packed.data.data(), scales, 50, 100, part.data());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 50));
}

TEST(Nf4, ZerosStayZerosAndWhatIsNotFiniteIsRefused) {
    const Quantized packed = quantized(std::vector<float>(64, 0.0F));
    EXPECT_EQ(packed.scales[0], 0);
    EXPECT_EQ(packed.data, std::vector<std::uint8_t>(32, 0x77));
    std::vector<float> bad(64, 1.0F);
    bad[9] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(quantized(bad), base::BadInput);
    bad[9] = std::numeric_limits<float>::infinity();
    EXPECT_THROW(quantized(bad), base::BadInput);
    std::vector<std::uint8_t> data(32);
    std::vector<float> scales(1);
    EXPECT_THROW(quantizeNf4(std::vector<float>(63), data, scales), base::Internal);
}

TEST(Nf4, PackedScalesAreNearTheScales) {
    std::vector<float> scales = normalValues(700, 0.01F);
    for (float& scale : scales) {
        scale = 0.05F + std::fabs(scale);
    }
    std::vector<std::uint8_t> codes(700);
    std::vector<float> codeScales(3);
    Nf4Scales packed;
    packed.offset = packNf4Scales(scales, codes, codeScales);
    packed.codes = codes.data();
    packed.codeScales = codeScales.data();
    EXPECT_NEAR(packed.offset, std::accumulate(scales.begin(), scales.end(), 0.0) / 700, 1e-7);
    for (std::size_t i = 0; i < scales.size(); ++i) {
        // The widest gap of the map is 0.9 / 64 of the largest.
        EXPECT_NEAR(packed.at(static_cast<std::int64_t>(i)), scales[i], codeScales[i / 256] * (0.9 / 128 + 1e-5));
    }
}

TEST(Nf4, AScaleIsCodeTimesItsScaleAndTheMean) {
    const std::vector<float> scales{1, 2, 6}; // mean 3; -2, -1 and 3 are left
    std::vector<std::uint8_t> codes(3);
    std::vector<float> codeScales(1);
    EXPECT_EQ(packNf4Scales(scales, codes, codeScales), 3);
    EXPECT_EQ(codeScales[0], 3);
    EXPECT_EQ(codes[2], 255);
    EXPECT_NEAR(nf4ScaleMap()[codes[0]], -2.0F / 3, 0.9F / 128);
    EXPECT_NEAR(nf4ScaleMap()[codes[1]], -1.0F / 3, 0.9F / 128);
    Nf4Scales packed;
    packed.codes = codes.data();
    packed.codeScales = codeScales.data();
    packed.offset = 3;
    EXPECT_EQ(packed.at(2), 6);
    EXPECT_EQ(packed.at(0), nf4ScaleMap()[codes[0]] * 3 + 3);
}

} // namespace
} // namespace vitrine::kernels

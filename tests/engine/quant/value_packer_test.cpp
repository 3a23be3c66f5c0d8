// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/value_packer.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "base/error.h"
#include "kernels/formats/nf4_format.h"

namespace vitrine::engine {
namespace {

using kernels::WeightFormat;

std::vector<float> randomValues(std::size_t count) {
    std::mt19937 random(std::random_device{}());
    std::normal_distribution<float> normal(0, 0.03F);
    std::vector<float> values(count);
    for (float& value : values) {
        value = normal(random);
    }
    return values;
}

std::vector<float> unpacked(const PackedValues& packed) {
    std::vector<float> codeScales(packed.scaleScales.size() / sizeof(float));
    std::memcpy(codeScales.data(), packed.scaleScales.data(), packed.scaleScales.size());
    kernels::Nf4Scales scales;
    scales.codes = packed.scales.data();
    scales.codeScales = codeScales.data();
    scales.offset = packed.scaleOffset;
    std::vector<float> out(packed.data.size() * 2);
    kernels::expandNf4(packed.data.data(), scales, 0, static_cast<std::int64_t>(out.size()), out.data());
    return out;
}

TEST(ValuePacker, Nf4ValuesComeBackWithinTheirSteps) {
    const std::vector<float> values = randomValues(64 * 700);
    const std::vector<float> back = unpacked(packValues(WeightFormat::Nf4, values));
    for (std::size_t group = 0; group < 700; ++group) {
        float largest = 0;
        for (std::size_t i = group * 64; i < group * 64 + 64; ++i) {
            largest = std::max(largest, std::abs(values[i]));
        }
        for (std::size_t i = group * 64; i < group * 64 + 64; ++i) {
            // Half of the widest step, and what the packed scale is off by.
            ASSERT_LE(std::abs(back[i] - values[i]), largest * (0.152F + 0.03F)) << i;
        }
    }
}

TEST(ValuePacker, PackingUnpackedValuesChangesNoElement) {
    const PackedValues once = packValues(WeightFormat::Nf4, randomValues(64 * 300));
    const std::vector<float> values = unpacked(once);
    const PackedValues twice = packValues(WeightFormat::Nf4, values);
    EXPECT_EQ(twice.data, once.data);
    const std::vector<float> again = unpacked(twice);
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(again[i], values[i], 0.03F * std::abs(values[i])) << i;
    }
}

TEST(ValuePacker, PiecesGiveTheBytesOfTheWhole) {
    const std::vector<float> values = randomValues(64 * 64);
    for (const WeightFormat format : {WeightFormat::Mxfp4, WeightFormat::Nf4}) {
        const PackedValues whole = packValues(format, values);
        ValuePacker packer(format, 64 * 64);
        packer.pack(64 * 40, std::span(values).subspan(64 * 40));
        packer.pack(0, std::span(values).first(64 * 40));
        const PackedValues pieces = packer.finish();
        EXPECT_EQ(pieces.data, whole.data);
        EXPECT_EQ(pieces.scales, whole.scales);
        EXPECT_EQ(pieces.scaleScales, whole.scaleScales);
        EXPECT_EQ(pieces.scaleOffset, whole.scaleOffset);
    }
}

TEST(ValuePacker, ValuesThatAreNotFiniteAreRefused) {
    std::vector<float> values = randomValues(128);
    values[77] = std::numeric_limits<float>::infinity();
    for (const WeightFormat format : {WeightFormat::Mxfp4, WeightFormat::Nf4}) {
        EXPECT_THROW(packValues(format, values), base::BadInput);
    }
}

} // namespace
} // namespace vitrine::engine

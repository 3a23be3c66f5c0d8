// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/mxfp4.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

#include "base/error.h"

namespace vitrine::engine {
namespace {

void requireSizes(std::size_t values, std::size_t blocks, std::size_t scales) {
    if (values % kMxfp4Group != 0 || blocks * 2 != values || scales * kMxfp4Group != values) {
        throw base::Internal(fmt::format("MXFP4 of {} values: {} block bytes and {} scales", values, blocks, scales));
    }
}

std::uint8_t groupScale(std::span<const float> group) {
    float largest = 0;
    for (const float value : group) {
        if (!std::isfinite(value)) {
            throw base::BadInput("MXFP4: a value is not finite and has no 4-bit form");
        }
        largest = std::max(largest, std::fabs(value));
    }
    if (largest == 0) {
        return 127;
    }
    constexpr int kLargestExponentOfE2m1 = 2;
    return static_cast<std::uint8_t>(std::clamp(std::ilogb(largest) - kLargestExponentOfE2m1 + 127, 0, 254));
}

} // namespace

float e8m0Value(std::uint8_t scale) {
    return scale == kMxfp4NanScale ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, scale - 127);
}

std::uint8_t nearestE2m1(float value) {
    const float magnitude = std::fabs(value);
    // Halfway points between neighbours. Of two codes the one with an even mantissa bit (0, 2, 4, 6) wins a tie.
    constexpr std::array<float, 7> kHalfway{0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
    std::uint8_t code = 0;
    for (std::size_t i = 0; i < kHalfway.size(); ++i) {
        const bool upperIsEven = i % 2 == 1;
        if (magnitude > kHalfway[i] || (upperIsEven && magnitude == kHalfway[i])) {
            code = static_cast<std::uint8_t>(i + 1);
        }
    }
    return static_cast<std::uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

void quantizeMxfp4(std::span<const float> values, std::span<std::uint8_t> blocks, std::span<std::uint8_t> scales) {
    requireSizes(values.size(), blocks.size(), scales.size());
    for (std::size_t group = 0; group < scales.size(); ++group) {
        const std::span<const float> in = values.subspan(group * kMxfp4Group, kMxfp4Group);
        scales[group] = groupScale(in);
        const int exponent = 127 - scales[group];
        for (std::size_t i = 0; i < kMxfp4GroupBytes; ++i) {
            const std::uint8_t low = nearestE2m1(std::ldexp(in[2 * i], exponent));
            const std::uint8_t high = nearestE2m1(std::ldexp(in[2 * i + 1], exponent));
            blocks[group * kMxfp4GroupBytes + i] = static_cast<std::uint8_t>(low | high << 4);
        }
    }
}

void dequantizeMxfp4(std::span<const std::uint8_t> blocks, std::span<const std::uint8_t> scales,
                     std::span<float> values) {
    requireSizes(values.size(), blocks.size(), scales.size());
    for (std::size_t group = 0; group < scales.size(); ++group) {
        const float scale = e8m0Value(scales[group]);
        for (std::size_t i = 0; i < kMxfp4GroupBytes; ++i) {
            const std::uint8_t byte = blocks[group * kMxfp4GroupBytes + i];
            values[group * kMxfp4Group + 2 * i] = kE2m1[byte & 15] * scale;
            values[group * kMxfp4Group + 2 * i + 1] = kE2m1[byte >> 4] * scale;
        }
    }
}

void checkMxfp4Scales(std::span<const std::uint8_t> scales, const std::string& name, std::uint64_t first) {
    if (scales.empty()) {
        return;
    }
    const void* found = std::memchr(scales.data(), kMxfp4NanScale, scales.size());
    if (found != nullptr) {
        const auto index = static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(found) - scales.data());
        throw base::BadInput(
            fmt::format("{}: scale {} is 255, which means \"not a number\"; the file is damaged", name, first + index));
    }
}

} // namespace vitrine::engine

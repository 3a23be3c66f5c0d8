// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/integer_quantizer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "kernels/formats/integer_format.h"

namespace vitrine::engine {
namespace {

using kernels::DType;

float roundTo(DType dtype, float value) {
    switch (dtype) {
    case DType::BF16:
        return kernels::bf16ToFloat(kernels::floatToBf16(value));
    case DType::F16:
        return kernels::f16ToFloat(kernels::floatToF16(value));
    default:
        return value;
    }
}

/// The step of the type at 1. It stands for scales of 0: whatever the scale, a group of zeros has the middle codes.
float stepAtOne(DType dtype) {
    switch (dtype) {
    case DType::BF16:
        return 0x1p-7F;
    case DType::F16:
        return 0x1p-10F;
    default:
        return std::numeric_limits<float>::epsilon();
    }
}

float codeRange(const IntegerRules& rules) {
    return static_cast<float>((1 << rules.bits) - 1);
}

} // namespace

IntegerGroup integerGroup(const IntegerRules& rules, std::span<const float> values) {
    const auto round = [&](float value) { return roundTo(rules.dtype, value); };
    float lowest = 0;
    float highest = 0;
    for (const float value : values) {
        if (!std::isfinite(value)) {
            throw base::BadInput("a value is not finite, so it has no integer form");
        }
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
    }
    const auto middle = static_cast<float>(kernels::middleCode(rules.bits));
    IntegerGroup group{0, static_cast<std::uint8_t>(middle)};
    if (rules.symmetric) {
        group.scale = round(std::max(-lowest, highest) / (codeRange(rules) / 2));
    } else {
        group.scale = round(round(highest - lowest) / codeRange(rules));
        if (group.scale != 0) {
            const float zero = round(-middle - round(lowest / group.scale));
            group.zero = static_cast<std::uint8_t>(std::rint(std::clamp(zero, -middle, middle - 1)) + middle);
        }
    }
    if (!std::isfinite(group.scale)) {
        throw base::BadInput(fmt::format("values from {} to {} are too far apart for a scale of type {}", lowest,
                                         highest, kernels::safetensorsName(rules.dtype)));
    }
    group.scale = group.scale == 0 ? stepAtOne(rules.dtype) : group.scale;
    return group;
}

std::uint8_t integerCode(const IntegerRules& rules, const IntegerGroup& group, float value) {
    const auto middle = static_cast<float>(kernels::middleCode(rules.bits));
    const float steps = roundTo(rules.dtype, value / group.scale);
    const float moved = roundTo(rules.dtype, steps + (static_cast<float>(group.zero) - middle));
    return static_cast<std::uint8_t>(std::rint(std::clamp(moved, -middle, middle - 1)) + middle);
}

std::vector<std::uint8_t> packedCodes(int bits, std::span<const std::uint8_t> codes) {
    if (bits == 8) {
        return {codes.begin(), codes.end()};
    }
    std::vector<std::uint8_t> packed(codes.size() / 2);
    for (std::size_t i = 0; i < packed.size(); ++i) {
        packed[i] = static_cast<std::uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
    }
    return packed;
}

void quantizeIntegers(const IntegerRules& rules, std::span<const float> values, std::span<std::uint8_t> codes,
                      std::span<IntegerGroup> groups) {
    const auto size = static_cast<std::size_t>(rules.group);
    if (values.size() != groups.size() * size || codes.size() != values.size()) {
        throw base::Internal("quantizeIntegers: sizes do not belong together");
    }
    std::vector<float> rounded(size);
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::size_t first = g * size;
        std::ranges::transform(values.subspan(first, size), rounded.begin(),
                               [&](float value) { return roundTo(rules.dtype, value); });
        groups[g] = integerGroup(rules, rounded);
        std::ranges::transform(rounded, codes.subspan(first, size).begin(),
                               [&](float value) { return integerCode(rules, groups[g], value); });
    }
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/integer_quantizer.h"

#include <algorithm>
#include <array>
#include <bit>
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

/// As kernels::floatToBf16() rounds, without its branch for values that are no numbers: they stay what they are, for
/// they have bits in the half that stays.
struct NearestBf16 {
    float operator()(float value) const {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
    }
};

/// Calls work with a function that rounds to the type. Loops over values have no switch inside then.
template <class Work> auto withRounding(DType dtype, const Work& work) {
    switch (dtype) {
    case DType::BF16:
        return work(NearestBf16());
    case DType::F16:
        return work([](float value) { return kernels::f16ToFloat(kernels::floatToF16(value)); });
    default:
        return work([](float value) { return value; });
    }
}

float roundTo(DType dtype, float value) {
    return withRounding(dtype, [value](const auto& round) { return round(value); });
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

/// Values that are worked on together: so many that compilers make vectors of them without a rest.
constexpr std::size_t kLanes = 16;
/// Added and taken away again it rounds to the nearest whole number, ties to even, as std::rint does: for numbers up to
/// 2^22, and without a call for each.
constexpr float kWholeNumbers = 0x1.8p23F;

/// The least and the largest of 0 and the values.
struct ValueRange {
    float lowest = 0;
    float highest = 0;
};

constexpr std::size_t kRangeLanes = 4; ///< groups are short, and lanes are put together at the end of each

/// Throws BadInput for a value that is not finite.
ValueRange rangeOf(std::span<const float> values) {
    std::array<float, kRangeLanes> low{}, high{};
    // x - x is 0 for finite numbers only, so a sum of them tells.
    std::array<float, kRangeLanes> nothing{};
    const auto take = [&](float value, std::size_t lane) {
        low[lane] = value < low[lane] ? value : low[lane];
        high[lane] = value > high[lane] ? value : high[lane];
        nothing[lane] += value - value;
    };
    const std::size_t whole = values.size() / kRangeLanes * kRangeLanes;
    const float* const data = values.data();
    for (std::size_t i = 0; i < whole; i += kRangeLanes) {
        for (std::size_t lane = 0; lane < kRangeLanes; ++lane) {
            take(data[i + lane], lane);
        }
    }
    for (std::size_t i = whole; i < values.size(); ++i) {
        take(data[i], i - whole);
    }
    if (std::ranges::any_of(nothing, [](float sum) { return sum != 0; })) {
        throw base::BadInput("a value is not finite, so it has no integer form");
    }
    return {std::ranges::min(low), std::ranges::max(high)};
}

/// to[i] = change(from[i])
template <class To, class Change> void forBlocks(std::span<const float> from, std::span<To> to, const Change& change) {
    std::size_t i = 0;
    for (; i + kLanes <= from.size(); i += kLanes) {
        std::array<float, kLanes> block;                    // copies alias nothing
        std::array<decltype(change(0.0F)), kLanes> changed; // as wide as the values, so that vectors hold both
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(i), kLanes, block.begin());
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            changed[lane] = change(block[lane]);
        }
        std::array<To, kLanes> narrow;
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            narrow[lane] = static_cast<To>(changed[lane]);
        }
        std::ranges::copy(narrow, to.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::ranges::transform(from.subspan(i), to.begin() + static_cast<std::ptrdiff_t>(i),
                           [&](float value) { return static_cast<To>(change(value)); });
}

/// What turns a value of a group into its code.
struct CodeRule {
    float scale = 0, zero = 0, middle = 0; ///< the zero counts from the middle code

    CodeRule(const IntegerRules& rules, const IntegerGroup& group)
        : scale(group.scale), middle(static_cast<float>(kernels::middleCode(rules.bits))) {
        zero = static_cast<float>(group.zero) - middle;
    }
    template <class Round> std::int32_t code(float value, const Round& round) const {
        const float moved = round(round(value / scale) + zero), least = -middle, most = middle - 1;
        const float notLess = moved > least ? moved : least;
        const float inside = notLess < most ? notLess : most;
        return static_cast<std::int32_t>(inside + kWholeNumbers - kWholeNumbers + middle);
    }
};

} // namespace

IntegerGroup integerGroup(const IntegerRules& rules, std::span<const float> values) {
    const auto round = [&](float value) { return roundTo(rules.dtype, value); };
    const auto [lowest, highest] = rangeOf(values);
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
    return withRounding(rules.dtype, [&](const auto& round) {
        return static_cast<std::uint8_t>(CodeRule(rules, group).code(value, round));
    });
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
    withRounding(rules.dtype, [&](const auto& round) {
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const std::size_t first = g * size;
            forBlocks(values.subspan(first, size), std::span(rounded), round);
            groups[g] = integerGroup(rules, rounded);
            forBlocks(std::span<const float>(rounded), codes.subspan(first, size),
                      [&, rule = CodeRule(rules, groups[g])](float value) { return rule.code(value, round); });
        }
    });
}

} // namespace vitrine::engine

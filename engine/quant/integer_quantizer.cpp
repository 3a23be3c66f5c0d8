// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/integer_quantizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "base/error.h"
#include "kernels/formats/integer_format.h"

namespace vitrine::engine {
namespace {

using kernels::DType;

float roundTo(DType dtype, float value) {
    return kernels::withRounding(dtype, [value](const auto& round) { return round(value); });
}

float codeRange(const IntegerRules& rules) {
    return static_cast<float>((1 << rules.bits) - 1);
}

/// Values that are worked on together: so many that compilers make vectors of them without a rest.
constexpr std::size_t kLanes = 16;
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

kernels::IntegerCoder coderOf(const IntegerRules& rules, const IntegerGroup& group) {
    return {rules.rule, rules.bits, group.scale, group.zero};
}

} // namespace

IntegerGroup integerGroup(const IntegerRules& rules, std::span<const float> values) {
    const auto round = [&](float value) { return roundTo(rules.dtype, value); };
    const auto [lowest, highest] = rangeOf(values);
    const auto middle = static_cast<float>(kernels::middleCode(rules.bits));
    IntegerGroup group{0, static_cast<std::uint8_t>(middle)};
    if (rules.symmetric) {
        group.scale = kernels::symmetricScale(rules.rule, rules.bits, rules.dtype, std::max(-lowest, highest));
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
    group.scale = group.scale == 0 ? kernels::stepAtOne(rules.dtype) : group.scale;
    return group;
}

std::uint8_t integerCode(const IntegerRules& rules, const IntegerGroup& group, float value) {
    return kernels::withRounding(kernels::typeOfSteps(rules.rule, rules.dtype), [&](const auto& round) {
        return static_cast<std::uint8_t>(coderOf(rules, group).code(value, round));
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
    const auto roundValues = [&](std::size_t first) {
        kernels::withRounding(
            rules.dtype, [&](const auto& round) { forBlocks(values.subspan(first, size), std::span(rounded), round); });
    };
    kernels::withRounding(kernels::typeOfSteps(rules.rule, rules.dtype), [&](const auto& round) {
        for (std::size_t g = 0; g < groups.size(); ++g) {
            roundValues(g * size);
            groups[g] = integerGroup(rules, rounded);
            forBlocks(std::span<const float>(rounded), codes.subspan(g * size, size),
                      [&, coder = coderOf(rules, groups[g])](float value) { return coder.code(value, round); });
        }
    });
}

} // namespace vitrine::engine

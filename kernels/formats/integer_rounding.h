// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How values become integer codes, to the bit: what engine/quant/integer_quantizer.h, the op PackWeight and its kernels
// have in common. Values are in the type T of the weight before. Halves are rounded to even. Stateless.
//
//     CompressedTensors   s = 2 max|x| / (2^bits - 1), code = round(clamp(x / s + zero)), each step in T, codes from
//     the
//                         lowest integer on: compressed-tensors 0.20 with a min-max observer
//     Seven               s = max(max|x| / 7, 1e-5) rounded to T, code = clamp(round(x / s), -7, 7), the quotient in
//                         float32: fake INT4 of slime, and what Kimi-K2 was trained with. Of 8 bits 127 stands for 7

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/core/dtype.h"
#include "kernels/core/floats.h"
#include "kernels/formats/integer_format.h"

namespace vitrine::kernels {

enum class IntegerRule : std::uint8_t { CompressedTensors, Seven };

/// As floatToBf16() rounds, without its branch for values that are no numbers: they stay what they are, for they have
/// bits in the half that stays.
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
        return work([](float value) { return f16ToFloat(floatToF16(value)); });
    default:
        return work([](float value) { return value; });
    }
}

/// The step of the type at 1. It stands for scales of 0: whatever the scale, a group of zeros has the middle codes.
inline float stepAtOne(DType dtype) {
    return dtype == DType::BF16 ? 0x1p-7F : dtype == DType::F16 ? 0x1p-10F : std::numeric_limits<float>::epsilon();
}

/// The scale of a symmetric group whose largest magnitude is `largest`. Not finite where the type has no such scale.
inline float symmetricScale(IntegerRule rule, int bits, DType dtype, float largest) {
    constexpr float kLeastScale = 1e-5F;
    const auto most = static_cast<float>(middleCode(bits) - 1);
    const float wide = rule == IntegerRule::Seven ? std::max(largest / most, kLeastScale) : largest / (most + 0.5F);
    const float scale = withRounding(dtype, [wide](const auto& round) { return round(wide); });
    return scale == 0 ? stepAtOne(dtype) : scale;
}

/// The type of the steps from a value to its code, in a weight of type `dtype`.
constexpr DType typeOfSteps(IntegerRule rule, DType dtype) {
    return rule == IntegerRule::Seven ? DType::F32 : dtype;
}

/// What turns a value of a group into its unsigned code.
class IntegerCoder {
public:
    /// `zero` is an unsigned code.
    IntegerCoder(IntegerRule rule, int bits, float scale, std::uint8_t zero)
        : middle_(static_cast<float>(middleCode(bits))), scale_(scale), zero_(static_cast<float>(zero) - middle_),
          least_(rule == IntegerRule::Seven ? 1 - middle_ : -middle_) {}

    /// `round` rounds to the type of steps.
    template <class Round> std::int32_t code(float value, const Round& round) const {
        const float moved = round(round(value / scale_) + zero_), most = middle_ - 1;
        const float notLess = moved > least_ ? moved : least_;
        const float inside = notLess < most ? notLess : most;
        return static_cast<std::int32_t>(inside + kWholeNumbers - kWholeNumbers + middle_);
    }

private:
    /// Added and taken away again it rounds to the nearest whole number, ties to even, as std::rint does: for numbers
    /// up to 2^22, and without a call for each.
    static constexpr float kWholeNumbers = 0x1.8p23F;

    float middle_, scale_, zero_, least_; ///< the zero counts from the middle code
};

} // namespace vitrine::kernels

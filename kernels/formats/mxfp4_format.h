// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// MXFP4 (OCP Microscaling formats 1.0): E2M1 elements in groups of 32 along the contracted axis with one E8M0 scale.
// A byte holds two elements, the low nibble first.

#include <bit>
#include <cstdint>

#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kMxfp4Group = 32;

inline constexpr float kE2M1[16] = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                    -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

/// The scale's bits as float32: 2^(s - 127), subnormal for 0, NaN for 255.
constexpr std::uint32_t e8m0Bits(std::uint8_t scale) {
    const std::uint32_t power = std::uint32_t{scale} << 23;
    const std::uint32_t nonzero = scale == 255 ? 0x7FC00000U : power;
    return scale == 0 ? 0x00400000U : nonzero;
}

/// Data are U8 (..., out, groups, 16), scales U8 (..., out, groups).
const PackedFormat& mxfp4Format();

/// Elements [begin, begin + count) of a stored row of MXFP4 as float32; both are multiples of 32.
void expandMxfp4(const std::uint8_t* blocks, const std::uint8_t* scales, std::int64_t begin, std::int64_t count,
                 float* out);

/// The nearest E2M1 nibble: ties go to the even mantissa, values beyond 6 become 6.
std::uint8_t nearestE2m1(float value);

/// Quantises `count` values, a multiple of 32: the scale is 2^(floor(log2(largest magnitude)) - 2), so that the largest
/// lies in [4, 8) before rounding; a group of zeros has scale 127. A group with a value that is not finite becomes
/// zeros with the scale 255, "not a number".
void packMxfp4(const float* values, std::int64_t count, std::uint8_t* blocks, std::uint8_t* scales);

/// 2^(s - 127), NaN for 255.
float mxfp4Scale(std::uint8_t scale);

} // namespace vitrine::kernels

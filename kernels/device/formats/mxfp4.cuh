// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// MXFP4 to BF16 in registers. An element is sign, two exponent bits, one mantissa bit; moved to bits 15 and 8..6 of a
// bf16 it is its value times 2^-126 (also the subnormal 0.5), so one product by a power of two finishes it. To leave
// room on both sides the result is 2^-63 of the weight; products are multiplied by 2^63 at their end. That is exact for
// scales from 2^-68 to 2^64: weights below become subnormal or zero, larger scales count as 2^64.

#include "device/abi/packed_weight.h"
#include "device/lib/bf16_pairs.cuh"

namespace vt {

inline constexpr float kMxfp4Undo = 0x1.0p63F; ///< times what is made from unpacked weights

/// 2^126 times 2^(scale - 127) times 2^-63, twice in a word.
__device__ __forceinline__ u32 mxfp4Factor(u32 scale) {
    return min(scale, 191U) * 0x00800080U + 63 * 0x00800080U;
}

/// A word of 8 elements (element i in bits 4 i ..) to four words, times 2^-63: out[i] holds
/// elements i (low half) and i + 4. One integer product puts an element where its sign and where its rest belong: the
/// pipe of shifts and masks is the one that is short.
__device__ __forceinline__ void unpackMxfp4(u32 word, u32 factor, u32 (&out)[4]) {
    constexpr u32 kKeep = 0x81C081C0U;
    const u32 upper = word >> 8;
    out[0] = multiplyBf16x2((word & 0x000F000FU) * 0x1040U & kKeep, factor);
    out[1] = multiplyBf16x2((word & 0x00F000F0U) * 0x0104U & kKeep, factor);
    out[2] = multiplyBf16x2((upper & 0x000F000FU) * 0x1040U & kKeep, factor);
    out[3] = multiplyBf16x2((upper & 0x00F000F0U) * 0x0104U & kKeep, factor);
}

/// One element (0..15) as float32, not scaled.
__device__ __forceinline__ float mxfp4Value(u32 element) {
    return __uint_as_float((element & 8U) << 28 | (element & 7U) << 22) * 0x1.0p126F;
}

/// 2^(scale - 127), NaN for 255.
__device__ __forceinline__ float mxfp4Scale(u32 scale) {
    return __uint_as_float(scale == 0 ? 0x00400000U : scale == 255 ? 0x7FC00000U : scale << 23);
}

__device__ __forceinline__ float mxfp4Element(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    const u8 pair = weight.data[row * weight.rowBytes + column / 2];
    const u8 scale = static_cast<const u8*>(weight.scales)[row * weight.groups + column / 32];
    return mxfp4Value(column % 2 == 0 ? pair & 15U : pair >> 4) * mxfp4Scale(scale);
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Whole words of E4M3 elements to BF16 in registers, in the pairs (i, i + 4) that expert_tiles.cuh wants. What the bits
// become is as fp8_half.cuh describes: the element times 2^-120 in a bf16, which is exact. The scale is multiplied in
// float32, so a weight is rounded once.

#include "device/lib/vector.cuh"

namespace vt {

inline constexpr float kFp8PairUndo = 0x1.0p120F; ///< times what the bits become

/// Element kPlace of `first` (low half) and of `second`, times 2^-120 and `factor`.
template <int kPlace> __device__ __forceinline__ u32 fp8Weights(u32 first, u32 second, float factor) {
    constexpr u32 kChoice = kPlace * 0x0011U + (kPlace + 4) * 0x1100U; // each element twice, in both bytes of its half
    const u32 twice = __byte_perm(first, second, kChoice);
    const u32 pair = (twice & 0x80008000U) | (twice >> 4 & 0x07F007F0U);
    return packBf16(__uint_as_float(pair << 16) * factor, __uint_as_float(pair & 0xFFFF0000U) * factor);
}

} // namespace vt

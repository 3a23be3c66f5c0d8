// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// MXFP4 (OCP Microscaling formats 1.0): E2M1 elements, low nibble first, one E8M0 scale for 32.

#include "device/lib/types.cuh"

namespace vt {

/// Eight elements e0..e7 of a word as half pairs (e0, e4), (e2, e6), (e1, e5), (e3, e7), each 2^-14 of its value: sign,
/// exponent and mantissa bits go to the same fields of a half, where E2M1's subnormal is one as well. Exact.
__device__ __forceinline__ void expandMxfp4(u32 word, u32 (&pairs)[4]) {
    // As bytes first, of which the upper one of a half holds everything: signs from one shift, the rest from another.
    const auto bytes = [](u32 signs, u32 others) {
        u32 out; // written out, or the compiler spreads it over the masks that follow
        asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(out) : "r"(signs), "r"(others), "r"(0x80808080U));
        return out;
    };
    constexpr u32 kUpper = 0x8E008E00U;
    const u32 low = bytes(word << 4, word << 1);
    const u32 high = bytes(word, word >> 3);
    pairs[0] = low << 8 & kUpper;
    pairs[1] = low & kUpper;
    pairs[2] = high << 8 & kUpper;
    pairs[3] = high & kUpper;
}
/// What undoes the 2^-14.
inline constexpr int kMxfp4HalfExponent = 14;

/// 2^(s - 127), with 0 for s = 0 (2^-127, below everything that counts) and infinity for 255, which no checkpoint
/// that was accepted holds.
__device__ __forceinline__ float e8m0(u32 scale) {
    return __uint_as_float(scale << 23);
}

} // namespace vt

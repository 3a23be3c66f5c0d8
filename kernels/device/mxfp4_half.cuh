// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// MXFP4 (OCP Microscaling formats 1.0): E2M1 elements, low nibble first, one E8M0 scale for 32.

#include "device/types.cuh"

namespace vt {

/// Eight elements e0..e7 of a word as half pairs (e0, e4), (e2, e6), (e1, e5), (e3, e7), each 2^-14 of its value: sign,
/// exponent and mantissa bits go to the same fields of a half, where E2M1's subnormal is one as well. Exact.
__device__ __forceinline__ void expandMxfp4(u32 word, u32 (&pairs)[4]) {
    // As bytes first: the upper byte of a half holds everything.
    const u32 low = ((word << 4) & 0x80808080U) | ((word << 1) & 0x0E0E0E0EU);
    const u32 high = (word & 0x80808080U) | ((word >> 3) & 0x0E0E0E0EU);
    pairs[0] = __byte_perm(low, 0, 0x2404);
    pairs[1] = low & 0xFF00FF00U;
    pairs[2] = __byte_perm(high, 0, 0x2404);
    pairs[3] = high & 0xFF00FF00U;
}
/// What undoes the 2^-14.
inline constexpr int kMxfp4HalfExponent = 14;

/// 2^(s - 127), with 0 for s = 0 (2^-127, below everything that counts) and infinity for 255, which no checkpoint
/// that was accepted holds.
__device__ __forceinline__ float e8m0(u32 scale) {
    return __uint_as_float(scale << 23);
}

} // namespace vt

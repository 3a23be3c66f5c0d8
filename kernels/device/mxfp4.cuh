// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// MXFP4 to BF16 in registers, exact. An element is sign, two exponent bits, one mantissa bit; moved to bits 15 and 8..6 of
// a bf16 it is its value times 2^-126 (also the subnormal 0.5), so one product by 2^126 times the group's scale finishes
// it. Scales above 2 need a second factor, because 2^127 is bf16's largest power.

#include "device/types.cuh"

namespace vt {

/// Two products of bf16, each rounded once.
__device__ __forceinline__ u32 multiplyBf16x2(u32 a, u32 b) {
    u32 out;
#if __CUDA_ARCH__ >= 900
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
#else
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(0x80008000U)); // - 0 keeps the sign of a zero
#endif
    return out;
}

/// 2^126 times 2^(scale - 127), or its factor that bf16 can hold; twice in a word.
__device__ __forceinline__ u32 mxfp4Factor(u32 scale) {
    return (scale < 128 ? scale + 126 : 254) * 0x00800080U;
}
/// What is left of the scale: 1 up to a scale of 2; NaN for 255.
__device__ __forceinline__ u32 mxfp4SecondFactor(u32 scale) {
    return scale <= 128 ? 0x3F803F80U : scale == 255 ? 0x7FC07FC0U : (scale - 1) * 0x00800080U;
}

/// A word of 8 elements (element i in bits 4 i ..) to four words: out[i] holds elements i (low half) and i + 4.
__device__ __forceinline__ void unpackMxfp4(u32 word, u32 factor, u32 (&out)[4]) {
    constexpr u32 kSign = 0x80008000U;
    constexpr u32 kRest = 0x01C001C0U;
    out[0] = multiplyBf16x2((word << 12 & kSign) | (word << 6 & kRest), factor);
    out[1] = multiplyBf16x2((word << 8 & kSign) | (word << 2 & kRest), factor);
    out[2] = multiplyBf16x2((word << 4 & kSign) | (word >> 2 & kRest), factor);
    out[3] = multiplyBf16x2((word & kSign) | (word >> 6 & kRest), factor);
}

/// One element (0..15) as float32, not scaled.
__device__ __forceinline__ float mxfp4Value(u32 element) {
    return __uint_as_float((element & 8U) << 28 | (element & 7U) << 22) * 0x1.0p126F;
}

/// 2^(scale - 127), NaN for 255.
__device__ __forceinline__ float mxfp4Scale(u32 scale) {
    return __uint_as_float(scale == 0 ? 0x00400000U : scale == 255 ? 0x7FC00000U : scale << 23);
}

} // namespace vt

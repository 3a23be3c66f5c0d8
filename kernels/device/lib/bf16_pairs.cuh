// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Arithmetic with two bf16 in a word, each rounded once; subnormals count.

#include "device/lib/types.cuh"

namespace vt {

/// a * b + c.
__device__ __forceinline__ u32 fmaBf16x2(u32 a, u32 b, u32 c) {
    u32 out;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
    return out;
}

__device__ __forceinline__ u32 multiplyBf16x2(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 900
    u32 out;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
    return out;
#else
    return fmaBf16x2(a, b, 0x80008000U); // - 0 keeps the sign of a zero
#endif
}

__device__ __forceinline__ u32 addBf16x2(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 900
    u32 out;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
    return out;
#else
    return fmaBf16x2(a, 0x3F803F80U, b);
#endif
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Pairs of bf16 in a word: what the formats of packed_rows are made of.

#include "device/lib/types.cuh"

namespace vt {

/// a b of two bf16 pairs.
__device__ __forceinline__ u32 scaleBf16x2(u32 a, u32 b) {
    u32 out;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(0x80008000U)); // - 0 keeps a zero's sign
    return out;
}

/// The low halves of two words, and the high ones.
__device__ __forceinline__ u32 lowHalves(u32 a, u32 b) {
    return __byte_perm(a, b, 0x5410);
}
__device__ __forceinline__ u32 highHalves(u32 a, u32 b) {
    return __byte_perm(a, b, 0x7632);
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// INT4 codes for tensor cores without a single multiplication. A code in the lowest bits of a bf16 is a subnormal,
// code * 2^-133, and one four bits higher is 16 times that: the step of bf16 is the same up to 2^-125. So two pairs of
// a word are the word behind a mask. What is multiplied with them, x, is scaled by powers of two instead, so that all
// products are code * x * kInt4Undo^-1, far from the ends of float32.

#include "device/formats/half_pairs.cuh"
#include "device/lib/mma.cuh"

namespace vt {

inline constexpr float kInt4Undo = 0x1.0p41F; ///< times sums of products

/// What pairs of x are multiplied by: bf16 twice.
inline constexpr u32 kInt4LowFactor = 0x6D806D80U;  ///< 2^92, for codes in the lowest bits
inline constexpr u32 kInt4HighFactor = 0x6B806B80U; ///< 2^88, for codes four bits higher

/// The pair of codes (-n, -n), n up to 15, to sum x: what a zero takes away.
constexpr __device__ __forceinline__ u32 int4LowMinus(u32 n) {
    return (0x8000U | n) * 0x00010001U;
}
constexpr __device__ __forceinline__ u32 int4HighMinus(u32 n) {
    return (0x8000U | n << 4) * 0x00010001U;
}

/// A word of 8 codes (code i in bits 4 i ..) to pairs (0, 4), (1, 5), (2, 6), (3, 7): low, high, low, high.
__device__ __forceinline__ void splitInt4(u32 word, u32 (&pairs)[4]) {
    const u32 upper = word >> 8;
    pairs[0] = word & 0x000F000FU;
    pairs[1] = word & 0x00F000F0U;
    pairs[2] = upper & 0x000F000FU;
    pairs[3] = upper & 0x00F000F0U;
}

/// INT4 as packed_rows multiplies it (packed_half.cuh).
struct Int4Half {
    static constexpr int kBits = 4;
    static constexpr float kUndo = kInt4Undo;
    static constexpr bool kBlocks = false;
    static constexpr bool kOffset = true;
    using Eight = u32;

    static __device__ __forceinline__ void pairsOf(const u32x4& x, u32 (&pairs)[4]) {
        pairs[0] = scaleBf16x2(lowHalves(x.x, x.z), kInt4LowFactor);
        pairs[1] = scaleBf16x2(highHalves(x.x, x.z), kInt4HighFactor);
        pairs[2] = scaleBf16x2(lowHalves(x.y, x.w), kInt4LowFactor);
        pairs[3] = scaleBf16x2(highHalves(x.y, x.w), kInt4HighFactor);
    }

    static __device__ __forceinline__ void split(Eight codes, u32 (&pairs)[4]) { splitInt4(codes, pairs); }

    /// By a matrix whose rows are all the same.
    template <u32 kZero> static __device__ __forceinline__ void minusSums(const u32 (&pairs)[4], float (&sums)[4]) {
        constexpr u32 kMinus[4] = {int4LowMinus(kZero), int4LowMinus(kZero), int4HighMinus(kZero),
                                   int4HighMinus(kZero)};
        mmaFirst<bf16>(sums, kMinus, pairs[0], pairs[1]);
        mma16816<bf16>(sums, kMinus, pairs[2], pairs[3]);
    }
};

} // namespace vt

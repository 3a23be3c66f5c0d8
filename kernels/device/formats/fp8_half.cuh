// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// E4M3 elements for tensor cores, exact and without a conversion. The seven bits of exponent and mantissa, moved into
// the lowest four bits of a bf16's exponent and the highest three of its mantissa, are the element times 2^-120. That
// holds for subnormal elements too: they become subnormals of bf16. What is multiplied with them, x, is scaled by a
// power of two, so that products stay far from the ends of float32. Codes that are no numbers (0x7F, 0xFF) count as
// 480 and -480: loading refuses weights that have any.

#include "device/formats/half_pairs.cuh"

namespace vt {

/// FP8 as packed_rows multiplies it (packed_half.cuh).
struct Fp8Half {
    static constexpr int kBits = 8;
    static constexpr float kUndo = 0x1.0p28F; ///< 2^120, less what x is scaled by
    static constexpr bool kBlocks = true;
    static constexpr bool kOffset = false;
    using Eight = u32x2;

    static __device__ __forceinline__ void pairsOf(const u32x4& x, u32 (&pairs)[4]) {
        constexpr u32 kFactor = 0x6D806D80U; // 2^92, twice
        pairs[0] = scaleBf16x2(lowHalves(x.x, x.y), kFactor);
        pairs[1] = scaleBf16x2(highHalves(x.x, x.y), kFactor);
        pairs[2] = scaleBf16x2(lowHalves(x.z, x.w), kFactor);
        pairs[3] = scaleBf16x2(highHalves(x.z, x.w), kFactor);
    }

    static __device__ __forceinline__ void split(const Eight& elements, u32 (&pairs)[4]) {
        splitWord(elements.x, pairs[0], pairs[1]);
        splitWord(elements.y, pairs[2], pairs[3]);
    }

private:
    /// Elements (0, 2) and (1, 3) of four.
    static __device__ __forceinline__ void splitWord(u32 word, u32& even, u32& odd) {
        constexpr u32 kSigns = 0x80008000U, kMagnitudes = 0x07F007F0U;
        even = (word << 8 & kSigns) | (word << 4 & kMagnitudes);
        odd = (word & kSigns) | (word >> 4 & kMagnitudes);
    }
};

} // namespace vt

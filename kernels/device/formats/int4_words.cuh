// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Whole words of INT4 codes to BF16 in registers, in the pairs (i, i + 4) that expert_tiles.cuh wants. Codes and what
// becomes of them are as int4_hopper.cuh describes: subnormals, here of two sizes, because a mask takes codes of even
// places as they are and those of odd places 16 times as large.

#include "device/formats/int4_hopper.cuh"
#include "device/lib/bf16_pairs.cuh"

namespace vt {

/// What the codes of one group of a row are scaled by.
template <bool kZeros> class Int4WordFactor {
public:
    __device__ __forceinline__ Int4WordFactor(float value, u32 zero)
        : even_(packBf16(value * 0x1.0p112F, value * 0x1.0p112F)), odd_(multiplyBf16x2(even_, 0x3D803D80U)), // 2^-4
          minus_(kZeros ? zero * 0x00010001U | 0x80008000U : multiplyBf16x2(even_, 0x80088008U)) {}          // -2^-130

    /// A word of 8 codes to four words of weights, times kInt4WeightUndo^-1: out[i] holds weights i (low half) and
    /// i + 4.
    __device__ __forceinline__ void unpack(u32 word, u32 (&out)[4]) const {
        const u32 upper = word >> 8;
        out[0] = weights(word & 0x000F000FU, even_, 1);
        out[1] = weights(word & 0x00F000F0U, odd_, 16);
        out[2] = weights(upper & 0x000F000FU, even_, 1);
        out[3] = weights(upper & 0x00F000F0U, odd_, 16);
    }

private:
    /// `size` is how many times too large the codes are.
    __device__ __forceinline__ u32 weights(u32 codes, u32 scale, u32 size) const {
        if constexpr (kZeros) { // the difference is exact, so the weight is rounded once
            const u32 minus = size == 1 ? minus_ : (minus_ & 0x000F000FU) << 4 | 0x80008000U;
            return multiplyBf16x2(addBf16x2(codes, minus), scale);
        } else {
            return fmaBf16x2(codes, scale, minus_);
        }
    }

    u32 even_, odd_; ///< factors
    u32 minus_;      ///< the zero, negative, as codes of even places; without zeros what 8 takes away of a weight
};

} // namespace vt

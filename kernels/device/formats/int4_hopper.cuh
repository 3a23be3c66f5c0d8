// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// INT4 weights as the A operand of wgmma, in the order in which they are stored. Of each word of 8 codes lane t of a
// quad takes byte t: the two inputs that are its own in a 16-byte piece of B's rows. Both codes of that byte stay where
// they are, the second one four bits higher: as bf16 they are subnormals, code * 2^-133 and 16 times that, which one
// multiplication scales. So a weight is (code - zero) * scale, rounded once to BF16, times kInt4WeightUndo^-1. Scales
// are rounded to BF16 before, if they are of another type: as x is, and as others do.

#include "device/lib/types.cuh"

namespace vt {

inline constexpr float kInt4WeightUndo = 0x1.0p21F; ///< times sums of products

/// What the codes of one group of a row are scaled by.
template <bool kZeros> struct Int4Factor {
    u32 scale; ///< for the two codes of a byte
    u32 minus; ///< the zero, negative, as the codes are; without zeros what 8 takes away of the scaled codes

    __device__ __forceinline__ Int4Factor(float value, u32 zero) {
        scale = packBf16(value * 0x1.0p112F, value * 0x1.0p108F);
        if constexpr (kZeros) {
            minus = (zero | zero << 20) | 0x80008000U;
        } else {
            minus = packBf16(value * -0x1.0p-18F, value * -0x1.0p-18F);
        }
    }
    /// Two weights from a word of codes. `select` is int4ByteOfLane().
    __device__ __forceinline__ u32 weights(u32 word, u32 select) const {
        u32 codes = __byte_perm(word, 0, select) & 0x00F0000FU;
        u32 out;
        if constexpr (kZeros) {
            u32 above;
            asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(above) : "r"(codes), "r"(0x3F803F80U), "r"(minus));
            asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(above), "r"(scale), "r"(0x80008000U));
        } else {
            asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(codes), "r"(scale), "r"(minus));
        }
        return out;
    }
};

/// Selects byte lane % 4 of a word twice: into bits 0.. and 16.., zeros between.
__device__ __forceinline__ u32 int4ByteOfLane(int lane) {
    return 0x4040U | static_cast<u32>(lane % 4) * 0x0101U;
}

} // namespace vt

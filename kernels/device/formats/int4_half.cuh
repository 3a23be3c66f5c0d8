// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// INT4 codes as BF16 pairs for tensor cores: what Dequantize rounds to BF16, to the last bit.

#include "device/abi/dtype.h"
#include "device/lib/types.cuh"

namespace vt {

/// a b + c of two bf16 pairs, each rounded once.
__device__ __forceinline__ u32 fmaBf16x2(u32 a, u32 b, u32 c) {
    u32 out;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
    return out;
}

/// The scale and the zero of a group, ready for unpackInt4. Scales of BF16 multiply pairs; others, which have more bits,
/// multiply floats.
template <int kScaleType> struct Int4Group;

template <> struct Int4Group<VT_BF16> {
    u32 scale;  ///< twice
    u32 offset; ///< -(128 + zero), twice

    using Stored = u16; ///< of a scale
    __device__ __forceinline__ Int4Group(Stored stored, u32 zero)
        : scale(stored * 0x00010001U), offset((0xC300U + zero) * 0x00010001U) {} // the zero is 128 + zero's mantissa
    /// Values (128 + code) of a pair.
    __device__ __forceinline__ u32 apply(u32 pair) const {
        return fmaBf16x2(fmaBf16x2(pair, 0x3F803F80U, offset), scale, 0x80008000U); // - 0 keeps the sign of a zero
    }
};

template <int kScaleType> struct Int4Group {
    float scale;
    float offset; ///< -(128 + zero)

    using Stored = StorageOf<kScaleType>;
    __device__ __forceinline__ Int4Group(Stored stored, u32 zero)
        : scale(toFloat(stored)), offset(-128.0F - static_cast<float>(zero)) {}
    __device__ __forceinline__ u32 apply(u32 pair) const {
        const float low = (__uint_as_float(pair << 16) + offset) * scale;
        const float high = (__uint_as_float(pair & 0xFFFF0000U) + offset) * scale;
        return packBf16(low, high);
    }
};

/// A word of 8 codes (code i in bits 4 i ..) to four pairs: out[i] holds codes i (low half) and i + 4.
template <int kScaleType>
__device__ __forceinline__ void unpackInt4(u32 word, const Int4Group<kScaleType>& group, u32 (&out)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const u32 pair = (word >> (4 * i) & 0x000F000FU) | 0x43004300U; // the code is the mantissa of 128 + code
        out[i] = group.apply(pair);
    }
}

} // namespace vt

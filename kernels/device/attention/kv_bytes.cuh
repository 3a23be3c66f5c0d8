// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of quantized KV caches (kernels/ops/attention/kv_view.h): bytes with a scale, INT8 or FP8 E4M3. The bits are the
// CPU's.

#include "device/lib/types.cuh"
#include "device/lib/warp.cuh"

namespace vt {

struct int8 {
    u8 bits;
};
struct e4m3 {
    u8 bits;
};
template <> struct Storage<VT_I8> {
    using type = int8;
};
template <> struct Storage<VT_F8E4M3> {
    using type = e4m3;
};

__device__ __forceinline__ float toFloat(int8 x) {
    return static_cast<float>(static_cast<signed char>(x.bits));
}
__device__ __forceinline__ float toFloat(e4m3 x) {
    const u32 magnitude = x.bits & 0x7FU;
    const float finite = __uint_as_float(magnitude << 20) * __uint_as_float(0x7B800000U); // 2^120: the biases differ
    return __uint_as_float((static_cast<u32>(x.bits) & 0x80U) << 24 | __float_as_uint(finite));
}

namespace bytes {

template <class B> inline constexpr bool kIsInt8 = false;
template <> inline constexpr bool kIsInt8<int8> = true;

/// The nearest byte, ties to even, of what lies within the type's range but for rounding. Other types have none.
template <class B> __device__ __forceinline__ B nearest(float x) {
    if constexpr (kIsInt8<B>) {
        return {static_cast<u8>(__float2int_rn(x))};
    } else if constexpr (sizeof(B) == 1) {
        const u32 word = __float_as_uint(x);
        const u32 magnitude = word & 0x7FFFFFFFU;
        u32 byte = (magnitude + 0x7FFFFU + (magnitude >> 20 & 1U) - 0x3C000000U) >> 20;
        if (magnitude < 0x3C800000U) { // subnormal: 16384 has their step
            byte = __float_as_uint(__fadd_rn(__uint_as_float(magnitude), 16384.0F)) - 0x46800000U;
        }
        return {static_cast<u8>((word >> 24 & 0x80U) | (byte < 0x7EU ? byte : 0x7EU))};
    } else {
        return {};
    }
}

/// The bits of a magnitude: larger for larger ones, largest for NaN.
__device__ __forceinline__ u32 magnitudeBits(float x) {
    return __float_as_uint(x) & 0x7FFFFFFFU;
}

/// A row's scale and what its elements are multiplied by.
struct Scale {
    float scale;   ///< NaN: an element is none
    float inverse; ///< 0: all bytes are
};
/// From the row's largest magnitudeBits. Both divisions are correctly rounded, as the CPU's, and without a branch to
/// where registers are spilled: a quotient of a correctly rounded reciprocal with one step of remainder, and a
/// reciprocal of few bits (not all ones) with one (Markstein, "Computation of elementary functions on the IBM RISC
/// System/6000 processor").
template <class B> __device__ __forceinline__ Scale scaleOf(u32 largest) {
    constexpr float kLargest = kIsInt8<B> ? 127 : 448;
    constexpr float kReciprocal = 1 / kLargest;
    if (largest >= 0x7F800000U) {
        return {__uint_as_float(0x7FC00000U), 0};
    }
    const float dividend = __uint_as_float(largest);
    const float guess = __fmul_rn(dividend, kReciprocal);
    const float quotient = __fmaf_rn(__fmaf_rn(-guess, kLargest, dividend), kReciprocal, guess);
    const float scale = __uint_as_float(__float_as_uint(quotient) & 0xFFFFFF00U);
    if (scale < __uint_as_float(0x00800000U)) {
        return {0, 0};
    }
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(scale));
    return {scale, __fmaf_rn(__fmaf_rn(-scale, inverse, 1.0F), inverse, inverse)};
}

template <class B> __device__ __forceinline__ B quantized(float x, const Scale& by) {
    return by.inverse == 0 ? B{} : nearest<B>(__fmul_rn(x, by.inverse)); // also of a NaN
}

__device__ __forceinline__ u32 fmaPair(u32 a, u32 b, u32 c) {
    u32 out;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
    return out;
}

/// Bytes 0 and 2 of a word as two bf16 (`even`) and bytes 1 and 3 (`odd`), exact, without their scale.
template <class B> __device__ __forceinline__ void split(u32 word, u32& even, u32& odd) {
    if constexpr (kIsInt8<B>) {
        // 128 has a step of 1: it takes the low seven bits, and -128 or -256 takes it and the sign away.
        constexpr u32 kOnes = 0x3F803F80U;
        const u32 high = word >> 8;
        even = fmaPair((word & 0x007F007FU) | 0x43004300U, kOnes, (word & 0x00800080U) | 0xC300C300U);
        odd = fmaPair((high & 0x007F007FU) | 0x43004300U, kOnes, (high & 0x00800080U) | 0xC300C300U);
    } else {
        constexpr u32 kBias = 0x7B807B80U; // 2^120
        constexpr u32 kNothing = 0x80008000U;
        even = fmaPair((word << 8 & 0x80008000U) | (word & 0x007F007FU) << 4, kBias, kNothing);
        odd = fmaPair((word & 0x80008000U) | (word & 0x7F007F00U) >> 4, kBias, kNothing);
    }
}

/// Four bytes in order as floats, without their scale.
template <class B> __device__ __forceinline__ void floats(u32 word, float (&x)[4]) {
    if constexpr (kIsInt8<B>) {
        const u32 above = word ^ 0x80808080U; // 128 more, which 2^23 takes as its last bits
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            x[i] = __fadd_rn(__uint_as_float(__byte_perm(above, 0x4B000000U, 0x7650U + i)), -8388736.0F);
        }
    } else {
#if __CUDA_ARCH__ >= 890
        u32 low, high;
        asm("{\n"
            ".reg .b16 first, second;\n"
            "mov.b32 {first, second}, %2;\n"
            "cvt.rn.f16x2.e4m3x2 %0, first;\n"
            "cvt.rn.f16x2.e4m3x2 %1, second;\n"
            "}\n"
            : "=r"(low), "=r"(high)
            : "r"(word));
        x[0] = toFloat(f16{static_cast<u16>(low)});
        x[1] = toFloat(f16{static_cast<u16>(low >> 16)});
        x[2] = toFloat(f16{static_cast<u16>(high)});
        x[3] = toFloat(f16{static_cast<u16>(high >> 16)});
#else
        u32 even, odd;
        split<B>(word, even, odd);
        x[0] = lowBf16(even);
        x[1] = lowBf16(odd);
        x[2] = highBf16(even);
        x[3] = highBf16(odd);
#endif
    }
}

/// Four bytes in order, times their scale, as bf16.
template <class B> __device__ __forceinline__ u32x2 scaled(u32 word, float scale) {
    float x[4];
    floats<B>(word, x);
    return {packBf16(x[0] * scale, x[1] * scale), packBf16(x[2] * scale, x[3] * scale)};
}

} // namespace bytes

} // namespace vt

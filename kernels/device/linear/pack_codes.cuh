// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Floats to INT4 and MXFP4, eight at a time, with the rules of kernels/formats/integer_rounding.h and mxfp4_format.h.

#include "device/abi/weight_format.h"
#include "device/formats/mxfp4.cuh"
#include "device/formats/mxfp4_pack.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

/// The bits of the largest magnitude: as large as infinity or larger where a value is not finite.
template <int kCount> __device__ __forceinline__ u32 largestBits(const float (&values)[kCount], u32 largest = 0) {
#pragma unroll
    for (const float value : values) {
        largest = max(largest, __float_as_uint(value) & 0x7FFFFFFFU);
    }
    return largest;
}

inline constexpr u32 kInfinityBits = 0x7F800000U;

/// Correctly rounded quotients by one positive divisor: with 1 / d rounded to the nearest, two steps of a quotient that
/// is nearly right give the nearest (Markstein 1990). A power of two brings the divisor near 1 before, so that nothing
/// leaves the range; quotients that are tiny may lose bits by that, and round to 0 as before. Six products a value and
/// no branch: the division of the compiler has one for each value, whose code does not fit the instruction cache.
struct Divisor {
    float power, divisor, inverse;

    __device__ __forceinline__ explicit Divisor(float by)
        : power(__uint_as_float(max(254U - min(__float_as_uint(by) >> 23, 254U), 1U) << 23)),
          divisor(__fmul_rn(by, power)), inverse(inverseOf(divisor)) {}
    __device__ __forceinline__ float quotient(float x) const {
        const float near = __fmul_rn(x, power);
        const float first = __fmul_rn(near, inverse);
        const float second = __fmaf_rn(__fmaf_rn(-first, divisor, near), inverse, first);
        return __fmaf_rn(__fmaf_rn(-second, divisor, near), inverse, second);
    }

private:
    /// As __frcp_rn, without its branch for numbers that are not near 1.
    __device__ static __forceinline__ float inverseOf(float x) {
        float near;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));
        return __fmaf_rn(near, __fmaf_rn(-x, near, 1.0F), near);
    }
};

/// The scale of a group and the codes of its values.
template <class T, bool kSeven> struct Int4Coder {
    using Scale = T;
    float scale = 0;
    bool finite = false;

    __device__ __forceinline__ explicit Int4Coder(u32 largest) : finite(largest < kInfinityBits) {
        const float magnitude = __uint_as_float(largest);
        const float wide = kSeven ? fmaxf(seventhOf(magnitude), 1e-5F) : __fdiv_rn(magnitude, 7.5F);
        constexpr float kStepAtOne = sizeof(T) == 4 ? 0x1p-23F : VT_TYPE == VT_BF16 ? 0x1p-7F : 0x1p-10F;
        const float narrow = rounded<T>(wide);
        scale = narrow == 0.0F ? kStepAtOne : narrow;
        finite = finite && __float_as_uint(scale) < kInfinityBits;
        scale = finite ? scale : __uint_as_float(0x7FC00000U);
    }
    __device__ __forceinline__ T stored() const { return fromFloat<T>(scale); }
    /// The codes of eight values, which become what the codes stand for.
    __device__ __forceinline__ u32 word(float (&values)[8]) const {
        // Added, it leaves a whole number plus 8 in the low bits, ties to even.
        constexpr float kWholeNumbers = 0x1.8p23F + 8.0F;
        const Divisor divisor(scale);
        u32 out = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float quotient = divisor.quotient(values[i]);
            // A seventh of the largest value is never so much too small that its quotient would round to 8.
            const float moved = kSeven ? quotient : fminf(fmaxf(rounded<T>(quotient), -8.0F), 7.0F);
            const float whole = moved + kWholeNumbers;
            out += __float_as_uint(whole) << (4 * i);
            values[i] = __fmul_rn(whole - kWholeNumbers, scale);
        }
        constexpr u32 kOnes = 0x11111111U;
        return finite ? out - 0x4B400000U * kOnes : 0x88888888U; // less what the bits above the codes add up to
    }

private:
    /// x / 7, correctly rounded but where it is so small that 1e-5 takes its place (Divisor).
    __device__ static __forceinline__ float seventhOf(float x) {
        constexpr float kSeventh = 1.0F / 7.0F;
        const float first = __fmul_rn(x, kSeventh);
        const float second = __fmaf_rn(__fmaf_rn(-first, 7.0F, x), kSeventh, first);
        return __fmaf_rn(__fmaf_rn(-second, 7.0F, x), kSeventh, second);
    }
};

struct Mxfp4Coder {
    using Scale = u8;
    u32 scale;
    float factor;

    __device__ __forceinline__ explicit Mxfp4Coder(u32 largest) : scale(mxfp4ScaleFor(largest)) {
        factor = __uint_as_float((scale == 255U ? 127U : 254U - scale) << 23); // 1 / 2^(scale - 127)
    }
    __device__ __forceinline__ u8 stored() const { return static_cast<u8>(scale); }
    /// The codes of eight values, which become what the codes stand for.
    __device__ __forceinline__ u32 word(float (&values)[8]) const {
        u32 out = 0;
        const float step = mxfp4Scale(scale);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const u32 code = scale == 255U ? 0U : nearestMxfp4(values[i] * factor);
            out |= code << (4 * i);
            values[i] = __fmul_rn(mxfp4Value(code), step);
        }
        return out;
    }
};

/// How many 4-bit codes of two words differ.
__device__ __forceinline__ u32 differentNibbles(u32 a, u32 b) {
    const u32 bits = a ^ b;
    return static_cast<u32>(__popc((bits | bits >> 1 | bits >> 2 | bits >> 3) & 0x11111111U));
}

/// How many bytes of two words differ.
__device__ __forceinline__ u32 differentBytes(u32 a, u32 b) {
    return static_cast<u32>(__popc(__vcmpne4(a, b))) / 8;
}

/// Adds what the threads of a block counted.
__device__ __forceinline__ void addCount(u32 count, u64* total) {
    __shared__ u32 sum;
    if (threadIdx.x == 0) {
        sum = 0;
    }
    __syncthreads();
    const u32 warp = __reduce_add_sync(kAllLanes, count);
    if (threadIdx.x % 32 == 0 && warp > 0) {
        atomicAdd(&sum, warp);
    }
    __syncthreads();
    if (threadIdx.x == 0 && sum > 0) {
        atomicAdd(total, static_cast<u64>(sum));
    }
}

} // namespace vt

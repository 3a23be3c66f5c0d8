// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Floats to INT4 and MXFP4, eight at a time, with the rules of kernels/formats/integer_rounding.h and mxfp4_format.h.

#include "device/abi/weight_format.h"
#include "device/formats/mxfp4_pack.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

/// Eight values in the type T of the weight.
template <class T, class X> __device__ __forceinline__ void loadRounded(const X* from, float (&values)[8]) {
    loadPiece(from, values);
#pragma unroll
    for (float& value : values) {
        value = rounded<T>(value);
    }
}

/// The bits of the largest magnitude: as large as infinity or larger where a value is not finite.
template <int kCount> __device__ __forceinline__ u32 largestBits(const float (&values)[kCount], u32 largest = 0) {
#pragma unroll
    for (const float value : values) {
        largest = max(largest, __float_as_uint(value) & 0x7FFFFFFFU);
    }
    return largest;
}

inline constexpr u32 kInfinityBits = 0x7F800000U;

/// The scale of a group and the codes of its values.
template <class T, bool kSeven> struct Int4Coder {
    using Scale = T;
    float scale = 0;
    bool finite = false;

    __device__ __forceinline__ explicit Int4Coder(u32 largest) : finite(largest < kInfinityBits) {
        const float magnitude = __uint_as_float(largest);
        const float wide = kSeven ? fmaxf(__fdiv_rn(magnitude, 7.0F), 1e-5F) : __fdiv_rn(magnitude, 7.5F);
        constexpr float kStepAtOne = sizeof(T) == 4 ? 0x1p-23F : VT_TYPE == VT_BF16 ? 0x1p-7F : 0x1p-10F;
        const float narrow = rounded<T>(wide);
        scale = narrow == 0.0F ? kStepAtOne : narrow;
        finite = finite && __float_as_uint(scale) < kInfinityBits;
    }
    __device__ __forceinline__ T stored() const { return fromFloat<T>(finite ? scale : __uint_as_float(0x7FC00000U)); }
    __device__ __forceinline__ u32 word(const float (&values)[8]) const {
        u32 out = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float quotient = __fdiv_rn(values[i], scale);
            const float moved = kSeven ? quotient : rounded<T>(quotient);
            const float inside = fminf(fmaxf(moved, kSeven ? -7.0F : -8.0F), 7.0F);
            out |= static_cast<u32>(__float2int_rn(inside) + 8) << (4 * i);
        }
        return finite ? out : 0x88888888U;
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
    __device__ __forceinline__ u32 word(const float (&values)[8]) const {
        u32 out = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            out |= nearestMxfp4(values[i] * factor) << (4 * i);
        }
        return scale == 255U ? 0U : out;
    }
};

/// How many 4-bit codes of two words differ.
__device__ __forceinline__ u32 differentNibbles(u32 a, u32 b) {
    const u32 bits = a ^ b;
    return static_cast<u32>(__popc((bits | bits >> 1 | bits >> 2 | bits >> 3) & 0x11111111U));
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

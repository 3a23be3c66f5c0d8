// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Types and conversions without toolkit headers. bf16 and f16 travel as 16-bit patterns.

#include "device/abi/dtype.h"

namespace vt {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

struct bf16 {
    u16 bits;
};
struct f16 {
    u16 bits;
};
struct alignas(8) u32x2 {
    u32 x, y;
};
struct alignas(16) u32x4 {
    u32 x, y, z, w;
};

__device__ __forceinline__ float toFloat(float x) {
    return x;
}
__device__ __forceinline__ float toFloat(bf16 x) {
    return __uint_as_float(static_cast<u32>(x.bits) << 16);
}
__device__ __forceinline__ float toFloat(f16 x) {
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
    return out;
}

template <class T> __device__ __forceinline__ T fromFloat(float x);
template <> __device__ __forceinline__ float fromFloat<float>(float x) {
    return x;
}
template <> __device__ __forceinline__ bf16 fromFloat<bf16>(float x) {
    bf16 out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
    return out;
}
template <> __device__ __forceinline__ f16 fromFloat<f16>(float x) {
    f16 out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
    return out;
}

/// Two bf16 in one word, `low` in the low half.
__device__ __forceinline__ u32 packBf16(float low, float high) {
    u32 out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}
__device__ __forceinline__ float lowBf16(u32 pair) {
    return __uint_as_float(pair << 16);
}
__device__ __forceinline__ float highBf16(u32 pair) {
    return __uint_as_float(pair & 0xFFFF0000U);
}

/// The storage type of a dtype number (kernels/core/dtype.h).
template <int dtype> struct Storage;
template <> struct Storage<VT_F32> {
    using type = float;
};
template <> struct Storage<VT_BF16> {
    using type = bf16;
};
template <> struct Storage<VT_F16> {
    using type = f16;
};
template <int dtype> using StorageOf = typename Storage<dtype>::type;

/// 16 bytes that are read once: they pass by the first-level cache.
__device__ __forceinline__ u32x4 loadOnce(const void* address) {
    u32x4 out;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                 : "l"(address));
    return out;
}

constexpr __device__ __forceinline__ int ceilDiv(int a, int b) {
    return (a + b - 1) / b;
}

} // namespace vt

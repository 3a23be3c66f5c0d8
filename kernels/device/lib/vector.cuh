// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Pieces of rows as floats: eight elements with 16-byte accesses (bytes: 8), or one.

#include "device/lib/types.cuh"

namespace vt {

template <int kCount, class T> __device__ __forceinline__ void loadPiece(const T* from, float (&out)[kCount]) {
    static_assert(kCount == 1 || kCount == 8, "pieces of one or eight");
    if constexpr (kCount == 1) {
        out[0] = toFloat(*from);
    } else if constexpr (sizeof(T) == 1) {
        alignas(8) T values[8];
        *reinterpret_cast<u32x2*>(values) = *reinterpret_cast<const u32x2*>(from);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            out[i] = toFloat(values[i]);
        }
    } else {
        constexpr int kWords = 8 * static_cast<int>(sizeof(T)) / 16;
        alignas(16) T values[8];
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            reinterpret_cast<u32x4*>(values)[i] = reinterpret_cast<const u32x4*>(from)[i];
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            out[i] = toFloat(values[i]);
        }
    }
}

template <int kCount, class T> __device__ __forceinline__ void storePiece(const float (&values)[kCount], T* to) {
    static_assert(kCount == 1 || kCount == 8, "pieces of one or eight");
    if constexpr (kCount == 1) {
        *to = fromFloat<T>(values[0]);
    } else {
        constexpr int kWords = 8 * static_cast<int>(sizeof(T)) / 16;
        alignas(16) T out[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            out[i] = fromFloat<T>(values[i]);
        }
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            reinterpret_cast<u32x4*>(to)[i] = reinterpret_cast<const u32x4*>(out)[i];
        }
    }
}

/// What storing as T and reading back gives.
template <class T> __device__ __forceinline__ float rounded(float x) {
    return toFloat(fromFloat<T>(x));
}

/// A row's values times the factor of its RMSNorm and its weights. kForm is RmsNormOrder: 0 rounds to T before the
/// weights.
template <int kForm, class T, int kCount>
__device__ __forceinline__ void normPiece(float (&x)[kCount], const float (&weights)[kCount], float factor) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        const float value = kForm == 0 ? rounded<T>(x[i] * factor) : x[i] * factor;
        x[i] = value * (kForm == 2 ? 1.0F + weights[i] : weights[i]);
    }
}

/// Addresses of BF16 rows that lie at a stride, in elements.
struct StridedRows {
    const void* x;
    i64 stride;
    __device__ __forceinline__ const bf16* operator()(int row) const {
        return static_cast<const bf16*>(x) + row * stride;
    }
};

/// This thread's number in a grid of one dimension.
__device__ __forceinline__ i64 gridThread() {
    return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
}

} // namespace vt

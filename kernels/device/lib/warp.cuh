// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reductions over a warp and a block, in a fixed order.

#include "device/lib/types.cuh"

namespace vt {

inline constexpr u32 kAllLanes = 0xFFFFFFFFU;

__device__ __forceinline__ float warpSum(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(kAllLanes, x, offset);
    }
    return x;
}

__device__ __forceinline__ float warpMax(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, offset));
    }
    return x;
}

/// Sums over the block, each of them given to every thread. `slots` holds kCount * 32 floats (blockDim.x / 32 are
/// enough for a single sum); blocks of whole warps.
template <int kCount> __device__ __forceinline__ void blockSums(float (&x)[kCount], float* slots) {
    const int warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll
    for (float& value : x) {
        value = warpSum(value);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
            slots[k * 32 + threadIdx.x / 32] = x[k];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
        x[k] = 0;
        for (int i = 0; i < warps; ++i) {
            x[k] += slots[k * 32 + i];
        }
    }
}

/// Sum over the block; every thread gets it. `slots` holds at least blockDim.x / 32 floats; blocks of whole warps.
__device__ __forceinline__ float blockSum(float x, float* slots) {
    float sums[1] = {x};
    blockSums(sums, slots);
    return sums[0];
}

} // namespace vt

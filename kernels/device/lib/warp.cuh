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

/// Sum over the block; every thread gets it. `slots` holds at least blockDim.x / 32 floats; blocks of whole warps.
__device__ __forceinline__ float blockSum(float x, float* slots) {
    const int warps = static_cast<int>(blockDim.x) / 32;
    x = warpSum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        slots[threadIdx.x / 32] = x;
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < warps; ++i) {
        sum += slots[i];
    }
    return sum;
}

} // namespace vt

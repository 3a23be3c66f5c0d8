// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sums in double over a warp and a block, in a fixed order.

#include "device/lib/warp.cuh"

namespace vt {

__device__ __forceinline__ double warpSum(double x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(kAllLanes, x, offset);
    }
    return x;
}

/// As blockSum of floats.
__device__ __forceinline__ double blockSum(double x, double* slots) {
    const int warps = static_cast<int>(blockDim.x) / 32;
    x = warpSum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        slots[threadIdx.x / 32] = x;
    }
    __syncthreads();
    double sum = 0;
    for (int i = 0; i < warps; ++i) {
        sum += slots[i];
    }
    return sum;
}

} // namespace vt

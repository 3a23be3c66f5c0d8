// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Choosing the largest of values that a warp holds: lane l has numbers l, l + 32, ... in registers.

#include "device/lib/types.cuh"
#include "device/lib/warp.cuh"

namespace vt {

/// Orders (value, number): larger values first, NaN last, ties to the lower number. 0 stands for nothing.
__device__ __forceinline__ u64 rankKey(float value, int number) {
    const u32 bits = __float_as_uint(value);
    u32 ordered = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
    ordered = value == 0 ? 0x80000000U : ordered; // both zeros are equal
    ordered = value == value ? ordered : 0U;
    return (static_cast<u64>(ordered) << 32) | (0xFFFFFFFFU - static_cast<u32>(number));
}
/// The value of a key; not of NaN.
__device__ __forceinline__ float rankValue(u64 key) {
    const u32 ordered = static_cast<u32>(key >> 32);
    return __uint_as_float((ordered & 0x80000000U) != 0 ? ordered ^ 0x80000000U : ~ordered);
}
__device__ __forceinline__ int rankNumber(u64 key) {
    return static_cast<int>(0xFFFFFFFFU - static_cast<u32>(key));
}

__device__ __forceinline__ u64 warpMax(u64 key) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const u64 other = __shfl_xor_sync(kAllLanes, key, offset);
        key = other > key ? other : key;
    }
    return key;
}

/// The first in order after `previous` (all ones: the first of all) of `count` values.
template <int kPerLane>
__device__ __forceinline__ u64 nextLargest(const float (&values)[kPerLane], int count, u64 previous) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    u64 best = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int number = i * 32 + lane;
        const u64 key = number < count ? rankKey(values[i], number) : 0;
        best = key < previous && key > best ? key : best;
    }
    return warpMax(best);
}

/// The value of that number, in every lane.
template <int kPerLane> __device__ __forceinline__ float valueOf(const float (&values)[kPerLane], int number) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float mine = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        mine = number == i * 32 + lane ? values[i] : mine;
    }
    return __shfl_sync(kAllLanes, mine, number % 32);
}

/// Router's choice by a warp: the k largest of kExperts logits (padding: minus infinity) and their weights. kOrder 0:
/// choose, then softmax over the chosen; 1: softmax over all, then choose, and with `normalize` divide by the sum of
/// the chosen.
template <int kExperts, int kOrder, int kPerLane>
__device__ __forceinline__ void chooseExperts(float (&values)[kPerLane], int k, bool normalize, int* ids,
                                              float* weights) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (kOrder == 1) {
        float maximum = -__int_as_float(0x7F800000);
#pragma unroll
        for (const float value : values) {
            maximum = fmaxf(maximum, value);
        }
        maximum = warpMax(maximum);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            values[i] = expf(values[i] - maximum);
            sum += i * 32 + lane < kExperts ? values[i] : 0.0F;
        }
        sum = warpSum(sum);
#pragma unroll
        for (float& value : values) {
            value /= sum;
        }
    }
    u64 previous = ~0ULL;
    float first = 0;
    float sum = 0;
    for (int j = 0; j < k; ++j) {
        previous = nextLargest(values, kExperts, previous);
        const int number = rankNumber(previous);
        float weight = valueOf(values, number);
        if constexpr (kOrder == 0) {
            first = j == 0 ? weight : first;
            weight = expf(weight - first);
        }
        sum += weight;
        if (lane == 0) {
            ids[j] = number;
            weights[j] = weight;
        }
    }
    if (kOrder == 0 || normalize) {
        __syncwarp();
        for (int j = lane; j < k; j += 32) {
            weights[j] /= sum;
        }
    }
}

} // namespace vt

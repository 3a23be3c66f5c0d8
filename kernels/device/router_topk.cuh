// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Router: the k largest of VT_EXPERTS logits of a token, a warp each. VT_ORDER 0: choose, then softmax over the chosen;
// 1: softmax over all, then choose.

#include "device/abi/router_topk.h"
#include "device/pdl.cuh"
#include "device/topk.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(128)
    router_topk(const __grid_constant__ vitrine::kernels::abi::RouterTopkParams p) {
    constexpr int kPerLane = ceilDiv(VT_EXPERTS, 32);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const i64 token = static_cast<i64>(blockIdx.x) * 4 + threadIdx.x / 32;
    pdl::wait();
    pdl::launchDependents();
    if (token >= p.tokens) {
        return;
    }
    const auto* logits = static_cast<const StorageOf<VT_X_DTYPE>*>(p.logits) + token * p.stride;
    float values[kPerLane];
    float maximum = -__int_as_float(0x7F800000);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int number = i * 32 + lane;
        values[i] = number < VT_EXPERTS ? toFloat(logits[number]) : -__int_as_float(0x7F800000);
        maximum = fmaxf(maximum, values[i]);
    }
    if constexpr (VT_ORDER == 1) {
        maximum = warpMax(maximum);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            values[i] = expf(values[i] - maximum);
            sum += i * 32 + lane < VT_EXPERTS ? values[i] : 0.0F;
        }
        sum = warpSum(sum);
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            values[i] /= sum;
        }
    }
    int* ids = p.ids + token * p.k;
    float* weights = p.weights + token * p.k;
    u64 previous = ~0ULL;
    float first = 0;
    float sum = 0;
    for (int j = 0; j < p.k; ++j) {
        previous = nextLargest(values, VT_EXPERTS, previous);
        const int number = rankNumber(previous);
        float mine = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            mine = number == i * 32 + lane ? values[i] : mine;
        }
        float weight = __shfl_sync(kAllLanes, mine, number % 32);
        if constexpr (VT_ORDER == 0) {
            first = j == 0 ? weight : first;
            weight = expf(weight - first);
        }
        sum += weight;
        if (lane == 0) {
            ids[j] = number;
            weights[j] = weight;
        }
    }
    if (VT_ORDER == 0 || p.normalize != 0) {
        __syncwarp();
        for (int j = lane; j < p.k; j += 32) {
            weights[j] /= sum;
        }
    }
}

} // namespace vt

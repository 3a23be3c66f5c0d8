// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Router: the k largest of VT_EXPERTS logits of a token, a warp each. VT_ORDER 0: choose, then softmax over the chosen;
// 1: softmax over all, then choose.

#include "device/abi/router_topk.h"
#include "device/lib/pdl.cuh"
#include "device/lib/topk.cuh"

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
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int number = i * 32 + lane;
        values[i] = number < VT_EXPERTS ? toFloat(logits[number]) : -__int_as_float(0x7F800000);
    }
    chooseExperts<VT_EXPERTS, VT_ORDER>(values, p.k, p.normalize != 0, p.ids + token * p.k, p.weights + token * p.k);
}

} // namespace vt

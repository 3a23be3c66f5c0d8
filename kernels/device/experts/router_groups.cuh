// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Router of DeepSeek-V3, a warp a token: a sigmoid of VT_EXPERTS logits, the best groups by score plus correction, the
// k best experts of these, and their scores as weights (kernels/ops/experts/moe.h, RouterGroups). Scores for the choice
// lie in shared memory, so that lane g adds up group g.

#include "device/abi/router_groups.h"
#include "device/lib/pdl.cuh"
#include "device/lib/topk.cuh"
#include "device/lib/vector.cuh"

namespace vt {

namespace router_groups_rows {

inline constexpr int kPerLane = ceilDiv(VT_EXPERTS, 32);
inline constexpr int kTokens = 4; ///< of a block

/// The sum of the two largest of `size` values; a NaN counts as the smallest.
__device__ __forceinline__ float twoLargest(const float* values, int size) {
    float first = -__int_as_float(0x7F800000), second = first;
    for (int i = 0; i < size; ++i) {
        const float value = values[i];
        second = value > first ? first : fmaxf(second, value);
        first = fmaxf(first, value);
    }
    return first + second;
}

/// Bit g: group g is one of the `kept` best. At most 32 groups.
__device__ __forceinline__ u32 bestGroups(const float* choice, int groups, int kept) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int size = VT_EXPERTS / groups;
    const float sums[1] = {lane < groups ? twoLargest(choice + lane * size, size) : 0.0F};
    u32 best = 0;
    u64 previous = ~0ULL;
    for (int j = 0; j < kept; ++j) {
        previous = nextLargest(sums, groups, previous);
        best |= 1U << rankNumber(previous);
    }
    return best;
}

} // namespace router_groups_rows

extern "C" __global__ void __launch_bounds__(128)
    router_groups(const __grid_constant__ vitrine::kernels::abi::RouterGroupsParams p) {
    using namespace router_groups_rows;
    __shared__ float shared[kTokens][VT_EXPERTS];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const i64 token = static_cast<i64>(blockIdx.x) * kTokens + threadIdx.x / 32;
    pdl::wait();
    pdl::launchDependents();
    if (token >= p.tokens) {
        return;
    }
    const auto* logits = static_cast<const StorageOf<VT_X_DTYPE>*>(p.logits) + token * p.stride;
    const auto* correction = static_cast<const StorageOf<VT_C_DTYPE>*>(p.correction);
    float* choice = shared[threadIdx.x / 32];
    float scores[kPerLane], values[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int number = i * 32 + lane;
        const bool there = number < VT_EXPERTS;
        scores[i] = there ? 1.0F / (1.0F + expf(-toFloat(logits[number]))) : 0.0F;
        values[i] = scores[i] + (there && correction != nullptr ? toFloat(correction[number]) : 0.0F);
        if (there) {
            choice[number] = values[i];
        }
    }
    __syncwarp();
    if (p.kept < p.groups) {
        const u32 best = bestGroups(choice, p.groups, p.kept);
        const int size = VT_EXPERTS / p.groups;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            const int group = min(i * 32 + lane, VT_EXPERTS - 1) / size;
            values[i] = (best >> group & 1U) != 0 ? values[i] : -__int_as_float(0x7F800000);
        }
    }
    int* ids = p.ids + token * p.k;
    float* weights = p.weights + token * p.k;
    u64 previous = ~0ULL;
    float sum = 0;
    for (int j = 0; j < p.k; ++j) {
        previous = nextLargest(values, VT_EXPERTS, previous);
        const int number = rankNumber(previous);
        const float weight = valueOf(scores, number);
        sum += weight;
        if (lane == 0) {
            ids[j] = number;
            weights[j] = weight;
        }
    }
    __syncwarp();
    const float scale = p.scale / (p.normalize != 0 ? sum + 1e-20F : 1.0F);
    for (int j = lane; j < p.k; j += 32) {
        weights[j] *= scale;
    }
}

} // namespace vt

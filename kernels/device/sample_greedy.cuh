// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The largest logit of each row, ties to the lower id, and its log-probability. A block takes 2048 logits; the last block
// of a row merges the others' results in their order.
// scratch: for each row and block {key (8 bytes), sum (float), 4 bytes unused}.

#include "device/pdl.cuh"
#include "device/sample.cuh"

namespace vt {

namespace greedy {

inline constexpr int kThreads = 256;
inline constexpr int kPiece = 2048;
inline constexpr int kMaxRows = 1 << 14;

struct alignas(16) Partial {
    u64 key;
    float sum;
    u32 unused;
};

/// Blocks of a row that have finished; whoever finishes last sets it back to 0.
__device__ unsigned counters[kMaxRows];

/// What a sum relative to `from` becomes when it is told relative to `to`.
__device__ __forceinline__ float rescaled(float sum, u64 from, u64 to) {
    const float value = from == 0 ? __int_as_float(0xFF800000) : rankValue(from);
    return value == __int_as_float(0xFF800000) ? 0.0F : sum * __expf(value - rankValue(to));
}

/// Merges what the threads hold; every thread gets the result. Keys of nothing are 0.
__device__ __forceinline__ Partial blockMerge(u64 key, float sum) {
    __shared__ Partial warps[kThreads / 32];
    const u64 best = warpMax(key);
    const float shared = warpSum(rescaled(sum, key, best));
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = {best, shared, 0};
    }
    __syncthreads();
    Partial all{0, 0, 0};
    for (const Partial& warp : warps) {
        all.key = warp.key > all.key ? warp.key : all.key;
    }
    for (const Partial& warp : warps) {
        all.sum += rescaled(warp.sum, warp.key, all.key);
    }
    return all;
}

} // namespace greedy

extern "C" __global__ void __launch_bounds__(256) sample_greedy(const __grid_constant__ SampleParams p) {
    using namespace greedy;
    using X = StorageOf<VT_X_DTYPE>;
    __shared__ bool isLast;
    const int row = static_cast<int>(blockIdx.y);
    const X* logits = static_cast<const X*>(p.logits) + row * p.stride;
    pdl::wait();
    pdl::launchDependents();
    const int begin = static_cast<int>(blockIdx.x) * kPiece;
    float values[kPiece / kThreads / VT_VECTOR][VT_VECTOR];
    u64 key = 0;
#pragma unroll
    for (int i = 0; i < kPiece / kThreads / VT_VECTOR; ++i) {
        const int at = begin + (i * kThreads + static_cast<int>(threadIdx.x)) * VT_VECTOR;
        if (at < p.vocab) {
            loadPiece(logits + at, values[i]);
        }
#pragma unroll
        for (int j = 0; j < VT_VECTOR; ++j) {
            values[i][j] = at < p.vocab ? comparable(values[i][j]) : __int_as_float(0xFF800000);
            const u64 other = at < p.vocab ? rankKey(values[i][j], at + j) : 0;
            key = other > key ? other : key;
        }
    }
    const float maximum = key == 0 ? 0.0F : rankValue(key);
    float sum = 0;
#pragma unroll
    for (auto& piece : values) {
#pragma unroll
        for (const float value : piece) {
            sum += value > __int_as_float(0xFF800000) ? __expf(value - maximum) : 0.0F;
        }
    }
    const Partial mine = blockMerge(key, sum);
    Partial* partials = static_cast<Partial*>(p.scratch) + static_cast<i64>(row) * gridDim.x;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = mine;
        __threadfence();
        isLast = atomicInc(&counters[row], gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!isLast) {
        return;
    }
    __threadfence();
    key = 0;
    sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(gridDim.x); i += kThreads) {
        const u64 other = __ldcg(&partials[i].key);
        const float otherSum = __ldcg(&partials[i].sum);
        const u64 best = other > key ? other : key;
        sum = rescaled(sum, key, best) + rescaled(otherSum, other, best);
        key = best;
    }
    const Partial all = blockMerge(key, sum);
    if (threadIdx.x == 0) {
        const int id = rankNumber(all.key);
        p.ids[row] = id;
        if (p.logprobs != nullptr) {
            p.logprobs[row] = toFloat(logits[id]) - logSum(rankValue(all.key), all.sum);
        }
    }
}

} // namespace vt

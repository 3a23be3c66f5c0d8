// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The largest logit of each row, ties to the lower id, and its log-probability. A warp takes 2048 logits, all of them
// under way at once; the last warp of a row merges the others' results in their order. Nobody waits for another warp,
// and the result does not depend on how many warps a block has. scratch: for each row and piece {key (8 bytes), sum
// (float), 4 bytes unused}.

#include "device/lib/pdl.cuh"
#include "device/sampling/sample.cuh"

namespace vt {

namespace greedy {

inline constexpr int kPiece = 2048;
inline constexpr int kLoads = kPiece / 32 / VT_VECTOR; ///< of a lane
inline constexpr int kMostThreads = 128;
inline constexpr int kMaxRows = 1 << 14;

struct alignas(16) Partial {
    u64 key;
    float sum;
    u32 unused;
};

/// Pieces of a row that have finished; whoever finishes last sets it back to 0.
__device__ unsigned counters[kMaxRows];

/// What a sum relative to `from` becomes when it is expressed relative to `to`. A sum that is NaN stays so.
__device__ __forceinline__ float rescaled(float sum, u64 from, u64 to) {
    const float value = from == 0 ? __int_as_float(0xFF800000) : rankValue(from);
    return value == __int_as_float(0xFF800000) && sum == sum ? 0.0F : sum * __expf(value - rankValue(to));
}

/// Merges what the lanes hold; every lane gets the result. Keys of nothing are 0.
__device__ __forceinline__ Partial merge(u64 key, float sum) {
    const u64 best = warpMax(key);
    return {best, warpSum(rescaled(sum, key, best)), 0};
}

/// Of logits begin .. begin + kPiece - 1 of a row.
template <class X> __device__ __forceinline__ Partial partialOf(const X* logits, int begin, int vocab) {
    const float kNothing = __int_as_float(0xFF800000);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float values[kLoads][VT_VECTOR];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int at = begin + (i * 32 + lane) * VT_VECTOR;
        if (at < vocab) {
            loadPiece(logits + at, values[i]);
        }
    }
    float maximum = kNothing;
    int number = begin + lane * VT_VECTOR;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int at = begin + (i * 32 + lane) * VT_VECTOR;
#pragma unroll
        for (int j = 0; j < VT_VECTOR; ++j) {
            values[i][j] = at < vocab ? comparable(values[i][j]) : kNothing;
            number = values[i][j] > maximum ? at + j : number;
            maximum = fmaxf(maximum, values[i][j]);
        }
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int at = begin + (i * 32 + lane) * VT_VECTOR;
#pragma unroll
        for (int j = 0; j < VT_VECTOR; ++j) {
            sum += at < vocab ? weightBelow(values[i][j], maximum) : 0.0F;
        }
    }
    return merge(begin + lane * VT_VECTOR < vocab ? rankKey(maximum, number) : 0, sum);
}

} // namespace greedy

extern "C" __global__ void __launch_bounds__(greedy::kMostThreads)
    sample_greedy(const __grid_constant__ SampleParams p) {
    using namespace greedy;
    using X = StorageOf<VT_X_DTYPE>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = static_cast<int>(blockIdx.y);
    const int pieces = ceilDiv(p.vocab, kPiece);
    const int piece = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
    const X* logits = static_cast<const X*>(p.logits) + row * p.stride;
    pdl::wait();
    pdl::launchDependents();
    if (piece >= pieces) {
        return;
    }
    const Partial mine = partialOf(logits, piece * kPiece, p.vocab);
    Partial* partials = static_cast<Partial*>(p.scratch) + static_cast<i64>(row) * pieces;
    bool isLast = false;
    if (lane == 0) {
        partials[piece] = mine;
        __threadfence();
        const unsigned last = static_cast<unsigned>(pieces - 1);
        isLast = atomicInc(&counters[row], last) == last;
        __threadfence();
    }
    if (__shfl_sync(kAllLanes, isLast ? 1 : 0, 0) == 0) {
        return;
    }
    u64 key = 0;
    float sum = 0;
    for (int i = lane; i < pieces; i += 32) {
        const u64 other = __ldcg(&partials[i].key);
        const float otherSum = __ldcg(&partials[i].sum);
        const u64 best = other > key ? other : key;
        sum = rescaled(sum, key, best) + rescaled(otherSum, other, best);
        key = best;
    }
    const Partial all = merge(key, sum);
    if (lane == 0) {
        const int id = rankNumber(all.key);
        p.ids[row] = id;
        const float logprob = toFloat(logits[id]) - logSum(rankValue(all.key), all.sum);
        if (p.logprobs != nullptr) {
            p.logprobs[row] = logprob;
        }
        if (p.drawLogprobs != nullptr) {
            p.drawLogprobs[2 * row] = logprob - logprob; // 0, or NaN of a broken row
            p.drawLogprobs[2 * row + 1] = logprob;
        }
    }
}

} // namespace vt

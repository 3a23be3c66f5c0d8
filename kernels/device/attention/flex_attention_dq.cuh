// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention backward, the pass for dq: a block owns kRows queries of one head and walks their tiles of keys in
// order.

#include "device/attention/flex_attention_gradient.cuh"

namespace vt {

namespace flex {

inline constexpr int kStageBytes = 2 * kColumns * kPitch;

/// The offsets and deltas of the rows that a lane holds.
struct RowValues {
    float offset[kRowTiles][2];
    float delta[kRowTiles][2];

    /// `rowBase`: where the rows of the head begin in the padded arrays; `first`: the warp's first query.
    __device__ __forceinline__ RowValues(const FlexAttentionParams& p, i64 rowBase, int first) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int query = first + r * 16 + half * 8 + lane / 4;
                offset[r][half] = p.offsets[rowBase + query];
                delta[r][half] = p.delta[rowBase + query];
            }
        }
    }
};

/// Gradients of the scores and weights of a tile; `at` is its first element of this warp.
__device__ __forceinline__ void differentiateTile(const FlexAttentionParams& p, const Element& at,
                                                  const RowValues& rows, bool tested, bool partial, Scores& scores,
                                                  Scores& weights, LargestTerm& largest) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int query = at.query + r * 16 + i / 2 * 8 + lane / 4;
#pragma unroll
            for (int j = 0; j < kTiles; ++j) {
                const Element element{at.batch, at.head, query, at.key + j * 8 + lane % 4 * 2 + i % 2};
                differentiate(p, element, tested, partial, false, rows.offset[r][i / 2], rows.delta[r][i / 2],
                              scores[r][j][i], weights[r][j][i], largest);
            }
        }
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(flex::kThreads, VT_BLOCKS_OF_SM)
    flex_attention_dq(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    extern __shared__ __align__(16) unsigned char shared[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    pdl::wait();
    pdl::launchDependents();
    const int begin = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows;
    const int batch = static_cast<int>(blockIdx.y) / p.heads;
    const int head = static_cast<int>(blockIdx.y) % p.heads;
    const int kvHead = head / (p.heads / p.kvHeads);
    const T* keys = rowsOf(p.k, batch, kvHead);
    const T* values = rowsOf(p.v, batch, kvHead);
    const i64 rowBase = (static_cast<i64>(batch) * p.heads + head) * p.paddedQueries;

    const u32 queries = sharedAddress(shared);
    const u32 upstream = queries + kRows * kPitch;
    const u32 ring = upstream + kRows * kPitch;
    const auto otherStage = [&](u32 stage) {
        static_assert(kStages <= 2, "one tile is loaded ahead");
        return kStages == 1 ? ring : 2 * ring + kStageBytes - stage;
    };
    const auto load = [&](int keyBegin, u32 stage) {
        loadRows<kColumns, kThreads>(keys, p.k.rowStride, keyBegin, p.keys, stage);
        loadRows<kColumns, kThreads>(values, p.v.rowStride, keyBegin, p.keys, stage + kColumns * kPitch);
    };
    loadRows<kRows, kThreads>(rowsOf(p.q, batch, head), p.q.rowStride, begin, p.queries, queries);
    loadRows<kRows, kThreads>(rowsOf(p.gradOut, batch, head), p.gradOut.rowStride, begin, p.queries, upstream);
#if VT_MASK == 1
    auto walk = walkRow<kColumns>(p, batch, head, begin);
#else
    IntervalWalk<kColumns> walk(0, p.keys - 1, 0, p.keys - 1);
#endif
    if (!walk.done()) {
        load(walk.begin(), ring);
    }
    copyAsyncCommit();

    const int warpRow = warp * kRowTiles * 16;
    const u32 mine = static_cast<u32>(warpRow * kPitch) + operandMatrixOffset(lane);
    const RowValues rows(p, rowBase, begin + warpRow);
    float sums[kRowTiles][kDimTiles][4];
    clear(sums);
    LargestTerm largest(p);
    u32 stage = ring;
    while (!walk.done()) {
        const int keyBegin = walk.begin();
        const bool partial = walk.partial();
        walk.next();
        copyAsyncWait<0>();
        __syncthreads(); // the tile is here, and all warps are done with the one before it
        if (kStages > 1 && !walk.done()) {
            load(walk.begin(), otherStage(stage));
            copyAsyncCommit();
        }
        Scores scores;
        Scores weights;
        multiplyRows(scores, stage, SharedFragments{queries + mine});
        multiplyRows(weights, stage + kColumns * kPitch, SharedFragments{upstream + mine});
        const Element at{batch, head, begin + warpRow, keyBegin};
        const bool tested = partial || keyBegin + kColumns > p.keys || begin + kRows > p.queries;
        differentiateTile(p, at, rows, tested, partial, scores, weights, largest);
        accumulateRows(sums, scores, stage);
        if (kStages == 1 && !walk.done()) {
            __syncthreads();
            load(walk.begin(), otherStage(stage));
            copyAsyncCommit();
        }
        stage = otherStage(stage);
    }
    copyAsyncWait<0>();
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        largest.finish();
    }
    storeRows(sums, rowsOf(p.dq, batch, head), p.dq.rowStride, begin + warpRow, p.queries, p.scale);
}

} // namespace vt

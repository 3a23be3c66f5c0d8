// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention backward, the pass for dk and dv: a block owns kRows keys of one key head and walks the tiles of
// queries of every head that reads it, in order; scores are made transposed, so that P^T and dS^T multiply from
// registers. VT_RESULTS: 1 dk, 2 dv, 3 both (two passes where both do not fit into registers).

#include "device/attention/flex_attention_gradient.cuh"

namespace vt {

namespace flex {

inline constexpr bool kMakesKeys = VT_RESULTS % 2 != 0;
inline constexpr bool kMakesValues = VT_RESULTS / 2 != 0;
inline constexpr int kStageBytes = 2 * kColumns * kPitch + 2 * kColumns * 4;

/// A tile of queries with their upstream gradients, offsets and deltas into a stage.
__device__ __forceinline__ void loadTile(const FlexAttentionParams& p, int batch, int head, int queryBegin, u32 stage) {
    loadRows<kColumns, kThreads>(rowsOf(p.q, batch, head), p.q.rowStride, queryBegin, p.queries, stage);
    loadRows<kColumns, kThreads>(rowsOf(p.gradOut, batch, head), p.gradOut.rowStride, queryBegin, p.queries,
                                 stage + kColumns * kPitch);
    const i64 base = (static_cast<i64>(batch) * p.heads + head) * p.paddedQueries + queryBegin;
    for (int i = static_cast<int>(threadIdx.x); i < 2 * kColumns; i += kThreads) {
        copyAsyncSmall<4>(stage + 2 * kColumns * kPitch + i * 4,
                          (i < kColumns ? p.offsets : p.delta) + base + i % kColumns);
    }
}

/// Gradients of the scores and weights of a tile; `at` is its first element of this warp, `rows` the offsets and deltas
/// of its queries.
__device__ __forceinline__ void differentiateTile(const FlexAttentionParams& p, const Element& at, const float* rows,
                                                  bool tested, bool partial, Scores& scores, Scores& weights,
                                                  TermSums& terms) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const int column = j * 8 + lane % 4 * 2 + odd;
            const float offset = rows[column];
            const float delta = rows[kColumns + column];
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const Element element{at.batch, at.head, at.query + column, at.key + r * 16 + half * 8 + lane / 4};
                    differentiate(p, element, tested, partial, false, offset, delta, scores[r][j][half * 2 + odd],
                                  weights[r][j][half * 2 + odd], terms);
                }
            }
        }
    }
}

#if VT_MASK == 1
using ColumnWalk = RunWalk<kColumns>;
#else
using ColumnWalk = IntervalWalk<kColumns>;
#endif

/// The tiles of queries of one head that see the keys from `key` on.
__device__ __forceinline__ ColumnWalk openColumn(const FlexAttentionParams& p, int batch, int head, int key) {
#if VT_MASK == 1
    return walkColumn<kColumns>(p, batch, head, key);
#else
    return ColumnWalk(0, p.queries - 1, 0, p.queries - 1);
#endif
}

/// Goes on with the next head whose walk is not done, if there is one before `lastHead`.
__device__ __forceinline__ void skipEmptyHeads(const FlexAttentionParams& p, int batch, int key, int lastHead,
                                               int& head, ColumnWalk& walk) {
    while (walk.done() && head + 1 < lastHead) {
        ++head;
        walk = openColumn(p, batch, head, key);
    }
}

/// Writes what this pass makes of dk and dv, from the warp's first key `key` on.
__device__ __forceinline__ void storeGradients(const FlexAttentionParams& p, int batch, int kvHead, int key,
                                               const float (&keySums)[kRowTiles][kDimTiles][4],
                                               const float (&valueSums)[kRowTiles][kDimTiles][4]) {
    if constexpr (kMakesKeys) {
        storeRows(keySums, rowsOf(p.dk, batch, kvHead), p.dk.rowStride, key, p.keys, p.scale);
    }
    if constexpr (kMakesValues) {
        storeRows(valueSums, rowsOf(p.dv, batch, kvHead), p.dv.rowStride, key, p.keys, 1.0F);
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(flex::kThreads, VT_BLOCKS_OF_SM)
    flex_attention_dkv(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    extern __shared__ __align__(16) unsigned char shared[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    pdl::wait();
    pdl::launchDependents();
    const int begin = static_cast<int>(blockIdx.x) * kRows; // the first keys are seen by the most rows in causal masks
    const int batch = static_cast<int>(blockIdx.y) / p.kvHeads;
    const int kvHead = static_cast<int>(blockIdx.y) % p.kvHeads;
    const int group = p.heads / p.kvHeads;

    const u32 keys = sharedAddress(shared);
    const u32 values = keys + kRows * kPitch;
    const u32 ring = values + kRows * kPitch;
    const auto otherStage = [&](u32 stage) {
        static_assert(kStages <= 2, "one tile is loaded ahead");
        return kStages == 1 ? ring : 2 * ring + kStageBytes - stage;
    };
    const auto load = [&](int head, int queryBegin, u32 stage) { loadTile(p, batch, head, queryBegin, stage); };
    loadRows<kRows, kThreads>(rowsOf(p.k, batch, kvHead), p.k.rowStride, begin, p.keys, keys);
    loadRows<kRows, kThreads>(rowsOf(p.v, batch, kvHead), p.v.rowStride, begin, p.keys, values);
    int head = kvHead * group;
    const int lastHead = head + group;
    ColumnWalk walk = openColumn(p, batch, head, begin);
    skipEmptyHeads(p, batch, begin, lastHead, head, walk);
    if (!walk.done()) {
        load(head, walk.begin(), ring);
    }
    copyAsyncCommit();

    const int warpRow = warp * kRowTiles * 16;
    const u32 mine = static_cast<u32>(warpRow * kPitch) + operandMatrixOffset(lane);
    float keySums[kRowTiles][kDimTiles][4];
    float valueSums[kRowTiles][kDimTiles][4];
    clear(keySums);
    clear(valueSums);
    TermSums terms(p);
    u32 stage = ring;
    while (!walk.done()) {
        const int queryBegin = walk.begin();
        const int queryHead = head;
        const bool partial = walk.partial();
        walk.next();
        skipEmptyHeads(p, batch, begin, lastHead, head, walk);
        copyAsyncWait<0>();
        __syncthreads(); // the tile is here, and all warps are done with the one before it
        if (kStages > 1 && !walk.done()) {
            load(head, walk.begin(), otherStage(stage));
            copyAsyncCommit();
        }
        Scores scores;
        Scores weights;
        multiplyRows(scores, stage, SharedFragments{keys + mine});
        multiplyRows(weights, stage + kColumns * kPitch, SharedFragments{values + mine});
        const Element at{batch, queryHead, queryBegin, begin + warpRow};
        const bool tested = partial || queryBegin + kColumns > p.queries || begin + kRows > p.keys;
        const float* rows = reinterpret_cast<const float*>(shared + (stage - keys) + 2 * kColumns * kPitch);
        differentiateTile(p, at, rows, tested, partial, scores, weights, terms);
        terms.endTile();
        if constexpr (kMakesValues) {
            accumulateRows(valueSums, weights, stage + kColumns * kPitch);
        }
        if constexpr (kMakesKeys) {
            accumulateRows(keySums, scores, stage);
        }
        if (kStages == 1 && !walk.done()) {
            __syncthreads();
            load(head, walk.begin(), otherStage(stage));
            copyAsyncCommit();
        }
        stage = otherStage(stage);
    }
    copyAsyncWait<0>();
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        terms.finish();
    }
    storeGradients(p, batch, kvHead, begin + warpRow, keySums, valueSums);
}

} // namespace vt

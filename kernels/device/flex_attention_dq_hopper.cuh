// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention backward on Hopper, the pass for dq: as flex_attention_dq.cuh, with a warpgroup for 64 of a block's 128
// queries.

#include "device/flex_attention_hopper_tiles.cuh"
#include "device/flex_attention_terms.cuh"

namespace vt {

namespace flex {

inline constexpr int kKeys = VT_COLUMNS; ///< of a tile that comes by
inline constexpr int kQueryBytes = kRows * kDim * 2;
inline constexpr int kTileBytes = kKeys * kDim * 2;
inline constexpr int kRingAt = 2 * kQueryBytes;
inline constexpr int kBarriersAt = kRingAt + 2 * kStages * kTileBytes;

struct Shared {
    u32 base;

    __device__ __forceinline__ u32 queries() const { return base; }
    __device__ __forceinline__ u32 upstream() const { return base + kQueryBytes; }
    __device__ __forceinline__ u32 keys(int stage) const {
        return base + kRingAt + static_cast<u32>(2 * stage * kTileBytes);
    }
    __device__ __forceinline__ u32 values(int stage) const { return keys(stage) + kTileBytes; }
    __device__ __forceinline__ u32 barrier(int index) const { return base + kBarriersAt + static_cast<u32>(index * 8); }
    __device__ __forceinline__ u32 queriesFull() const { return barrier(0); }
    __device__ __forceinline__ u32 queriesEmpty() const { return barrier(1); }
    __device__ __forceinline__ u32 full(int stage) const { return barrier(2 + stage); }
    __device__ __forceinline__ u32 empty(int stage) const { return barrier(2 + kStages + stage); }
};

/// 128 queries of one head; those that see the most keys (in causal masks) come first.
struct Work {
    int batch, head, begin;

    __device__ __forceinline__ Work(const FlexAttentionParams& p, int item) {
        const int tiles = ceilDiv(p.queries, kRows);
        begin = (tiles - 1 - item % tiles) * kRows;
        head = item / tiles % p.heads;
        batch = item / tiles / p.heads;
    }
};

__device__ __forceinline__ int workCount(const FlexAttentionParams& p) {
    return ceilDiv(p.queries, kRows) * p.heads * p.batch;
}

#if VT_MASK == 1
using Walk = RunWalk<kKeys>;
__device__ __forceinline__ Walk walkOf(const FlexAttentionParams& p, const Work& work) {
    return walkRow<kKeys>(p, work.batch, work.head, work.begin);
}
#else
using Walk = IntervalWalk<kKeys>;
__device__ __forceinline__ Walk walkOf(const FlexAttentionParams& p, const Work&) {
    return {0, p.keys - 1, 0, p.keys - 1};
}
#endif

__device__ void produce(const FlexAttentionParams& p, const Shared& shared) {
    Stage stage;
    u32 queriesPhase = 0;
    const int count = workCount(p);
    for (int item = static_cast<int>(blockIdx.x); item < count; item += static_cast<int>(gridDim.x)) {
        const Work work(p, item);
        const int kvHead = work.head / (p.heads / p.kvHeads);
        Walk walk = walkOf(p, work);
        if (walk.done()) {
            continue;
        }
        barrier::wait(shared.queriesEmpty(), queriesPhase ^ 1);
        queriesPhase ^= 1;
        barrier::arriveExpect(shared.queriesFull(), 2 * kQueryBytes);
        bring<kRows>(shared.queries(), &p.queryMap, work.begin, work.head, work.batch, shared.queriesFull());
        bring<kRows>(shared.upstream(), &p.gradOutMap, work.begin, work.head, work.batch, shared.queriesFull());
        for (; !walk.done(); walk.next(), stage.next()) {
            const u32 full = shared.full(stage.index);
            barrier::wait(shared.empty(stage.index), stage.phase ^ 1);
            barrier::arriveExpect(full, 2 * kTileBytes);
            bring<kKeys>(shared.keys(stage.index), &p.keyMap, walk.begin(), kvHead, work.batch, full);
            bring<kKeys>(shared.values(stage.index), &p.valueMap, walk.begin(), kvHead, work.batch, full);
        }
    }
}

using Scores = float[kKeys / 2];

/// A thread's two rows (the second is 8 further) and what their gradients need.
struct Rows {
    int batch, head, query;
    float offset[2];
    float delta[2];
};

__device__ __forceinline__ void differentiateTile(const FlexAttentionParams& p, const Rows& rows, int keyBegin,
                                                  bool tested, bool partial, Scores& scores, Scores& gradients,
                                                  LargestTerm& largest) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
        const int half = i / 2 % 2;
        const Element element{rows.batch, rows.head, rows.query + half * 8, keyBegin + i / 4 * 8 + 2 * t + i % 2};
        differentiate(p, element, tested, partial, rows.offset[half], rows.delta[half], scores[i], gradients[i],
                      largest);
    }
}

__device__ void consume(const FlexAttentionParams& p, const Shared& shared, int group) {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const u32 queries = shared.queries() + static_cast<u32>(group * 64 * 128);
    const u32 upstream = shared.upstream() + static_cast<u32>(group * 64 * 128);
    Stage stage;
    u32 queriesPhase = 0;
    LargestTerm largest;
    const int count = workCount(p);
    for (int item = static_cast<int>(blockIdx.x); item < count; item += static_cast<int>(gridDim.x)) {
        const Work work(p, item);
        Walk walk = walkOf(p, work);
        Rows rows{work.batch, work.head, work.begin + group * 64 + warp * 16 + lane / 4, {}, {}};
        const i64 base = (static_cast<i64>(work.batch) * p.heads + work.head) * p.paddedQueries + rows.query;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            rows.offset[half] = p.offsets[base + half * 8];
            rows.delta[half] = p.delta[base + half * 8];
        }
        float sums[kDim / 2];
        clear(sums);
        if (!walk.done()) {
            barrier::wait(shared.queriesFull(), queriesPhase);
            queriesPhase ^= 1;
            Fragments<kKeys> slopes;
            for (; !walk.done(); walk.next(), stage.next()) {
                Scores scores;
                Scores gradients;
                barrier::wait(shared.full(stage.index), stage.phase);
                issueProducts<kRows, kKeys>(scores, queries, shared.keys(stage.index));
                issueProducts<kRows, kKeys>(gradients, upstream, shared.values(stage.index));
                wgmma::wait<0>();
                const bool tested = walk.partial() || walk.begin() + kKeys > p.keys;
                differentiateTile(p, rows, walk.begin(), tested, walk.partial(), scores, gradients, largest);
                pack<kKeys>(scores, slopes);
                issueSums<kKeys>(sums, slopes, shared.keys(stage.index));
                wgmma::wait<0>();
                release(shared.empty(stage.index));
            }
            release(shared.queriesEmpty());
        }
        storeRows(sums, rowsOf(p.dq, work.batch, work.head), p.dq.rowStride, rows.query, p.queries, p.scale);
    }
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        largest.finish(p.captureLargest);
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(384, 1)
    flex_attention_dq_hopper(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared{sharedAddress(memory)};
    if (threadIdx.x == 0) {
        barrier::init(shared.queriesFull(), 1);
        barrier::init(shared.queriesEmpty(), kGroups);
        for (int stage = 0; stage < kStages; ++stage) {
            barrier::init(shared.full(stage), 1);
            barrier::init(shared.empty(stage), kGroups);
        }
        barrier::fenceInit();
    }
    __syncthreads();
    pdl::wait();
    pdl::launchDependents();
    const int warpgroup = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == kGroups) {
        wgmma::giveRegisters<kRegistersOfProducer>();
        if (threadIdx.x == kGroups * 128) {
            produce(p, shared);
        }
    } else {
        wgmma::takeRegisters<kRegistersOfConsumer>();
        consume(p, shared, warpgroup);
    }
}

} // namespace vt

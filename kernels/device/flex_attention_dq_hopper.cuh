// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention backward on Hopper, the pass for dq: as flex_attention_dq.cuh, with a warpgroup for 64 of a block's 128
// queries.

#include "device/flex_attention_hopper_tiles.cuh"
#include "device/flex_attention_terms.cuh"

namespace vt {

namespace flex {

inline constexpr int kKeys = 64; ///< of a tile that comes by
inline constexpr int kStages = 3;
using Stage = RingPlace<kStages>;
inline constexpr int kQueryBytes = kRows * kDim * 2;
inline constexpr int kTileBytes = kKeys * kDim * 2;
inline constexpr int kRowStages = 2; ///< buffers of queries and gradOut
inline constexpr int kRingAt = 2 * kRowStages * kQueryBytes;
inline constexpr int kNotesAt = kRingAt + 2 * kStages * kTileBytes;
inline constexpr int kBarriersAt = kNotesAt + kStages * Note::kBytes;

struct Shared {
    u32 base;

    __device__ __forceinline__ u32 queries(int stage) const { return base + static_cast<u32>(2 * stage * kQueryBytes); }
    __device__ __forceinline__ u32 upstream(int stage) const { return queries(stage) + kQueryBytes; }
    __device__ __forceinline__ u32 keys(int stage) const {
        return base + kRingAt + static_cast<u32>(2 * stage * kTileBytes);
    }
    __device__ __forceinline__ u32 values(int stage) const { return keys(stage) + kTileBytes; }
    __device__ __forceinline__ u32 note(int stage) const {
        return base + kNotesAt + static_cast<u32>(stage * Note::kBytes);
    }
    __device__ __forceinline__ u32 barrier(int index) const { return base + kBarriersAt + static_cast<u32>(index * 8); }
    __device__ __forceinline__ u32 queriesFull(int stage) const { return barrier(stage); }
    __device__ __forceinline__ u32 queriesEmpty(int stage) const { return barrier(kRowStages + stage); }
    __device__ __forceinline__ u32 full(int stage) const { return barrier(2 * kRowStages + stage); }
    __device__ __forceinline__ u32 empty(int stage) const { return full(kStages + stage); }
};

/// 128 queries of one head; the last come first, because they see the most in causal masks.
struct Work {
    int batch, head, begin;

    __device__ __forceinline__ Work(const FlexAttentionParams& p, const Schedule& schedule)
        : batch(schedule.head() / p.heads), head(schedule.head() % p.heads),
          begin((ceilDiv(p.queries, kRows) - 1 - schedule.tile()) * kRows) {}
};

__device__ __forceinline__ Schedule scheduleOf(const FlexAttentionParams& p) {
    return {ceilDiv(p.queries, kRows), p.batch * p.heads, static_cast<i64>(p.keys) * kDim * 4, p.heads / p.kvHeads};
}

#if VT_MASK == 1
__device__ __forceinline__ RunWalk<kKeys> walkOf(const FlexAttentionParams& p, const Work& work) {
    return walkRow<kKeys>(p, work.batch, work.head, work.begin);
}
#else
__device__ __forceinline__ IntervalWalk<kKeys> walkOf(const FlexAttentionParams& p, const Work&) {
    return {0, p.keys - 1, 0, p.keys - 1};
}
#endif

__device__ __forceinline__ void bringTile(const FlexAttentionParams& p, const Shared& shared, const Work& work,
                                          const Stage& stage, const Note& note) {
    const int kvHead = work.head / (p.heads / p.kvHeads);
    const u32 full = shared.full(stage.index);
    barrier::wait(shared.empty(stage.index), stage.phase ^ 1);
    note.write(shared.note(stage.index));
    barrier::arriveExpect(full, 2 * kTileBytes);
    bring<kKeys>(shared.keys(stage.index), &p.keyMap, note.begin, kvHead, work.batch, full);
    bring<kKeys>(shared.values(stage.index), &p.valueMap, note.begin, kvHead, work.batch, full);
}

__device__ void produce(const FlexAttentionParams& p, const Shared& shared) {
    Stage stage;
    RingPlace<kRowStages> queries;
    for (Schedule schedule = scheduleOf(p); schedule.next(); queries.next()) {
        const Work work(p, schedule);
        const u32 full = shared.queriesFull(queries.index);
        auto walk = walkOf(p, work);
        barrier::wait(shared.queriesEmpty(queries.index), queries.phase ^ 1);
        barrier::arriveExpect(full, 2 * kQueryBytes);
        bring<kRows>(shared.queries(queries.index), &p.queryMap, work.begin, work.head, work.batch, full);
        bring<kRows>(shared.upstream(queries.index), &p.gradOutMap, work.begin, work.head, work.batch, full);
        do {
            bringTile(p, shared, work, stage, Note::of(walk, work.head));
            stage.next();
        } while (!walk.done());
    }
}

using Scores = float[kKeys / 2];

/// A thread's two rows (the second is 8 further) and what their gradients need.
struct Rows {
    int batch, head, query;
    float offset[2];
    float delta[2];
};

__device__ __forceinline__ void differentiateTile(const FlexAttentionParams& p, const Rows& rows, const Note& note,
                                                  Scores& scores, Scores& gradients, LargestTerm& largest) {
    const bool tested = note.partial() || note.begin + kKeys > p.keys;
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
        const int half = i / 2 % 2;
        const Element element{rows.batch, rows.head, rows.query + half * 8, note.begin + i / 4 * 8 + 2 * t + i % 2};
        differentiate(p, element, tested, note.partial(), note.nothing(), rows.offset[half], rows.delta[half],
                      scores[i], gradients[i], largest);
    }
}

__device__ __forceinline__ Rows rowsOf(const FlexAttentionParams& p, const Work& work, int group) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    Rows rows{work.batch, work.head, work.begin + group * 64 + thread / 32 * 16 + thread % 32 / 4, {}, {}};
    const i64 base = (static_cast<i64>(work.batch) * p.heads + work.head) * p.paddedQueries + rows.query;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        rows.offset[half] = p.offsets[base + half * 8];
        rows.delta[half] = p.delta[base + half * 8];
    }
    return rows;
}

__device__ __forceinline__ void storeGradient(const FlexAttentionParams& p, const Rows& rows,
                                              const float (&sums)[kDim / 2]) {
    storeRows(sums, rowsOf(p.dq, rows.batch, rows.head), p.dq.rowStride, rows.query, p.queries, p.scale);
}

__device__ void consume(const FlexAttentionParams& p, const Shared& shared, int group) {
    const u32 mine = static_cast<u32>(group * 64 * 128);
    Stage stage;
    RingPlace<kRowStages> place;
    LargestTerm largest;
    for (Schedule schedule = scheduleOf(p); schedule.next(); place.next()) {
        const Rows rows = rowsOf(p, Work(p, schedule), group);
        barrier::wait(shared.queriesFull(place.index), place.phase);
        float sums[kDim / 2];
        Fragments<kKeys> slopes;
        u32 used = 0; ///< barrier of the stage whose sums are under way
        for (bool last = false; !last; stage.next()) {
            Scores scores;
            Scores gradients;
            barrier::wait(shared.full(stage.index), stage.phase);
            const Note note = Note::read(shared.note(stage.index));
            last = note.last();
            issueProducts<kRows, kKeys>(scores, shared.queries(place.index) + mine, shared.keys(stage.index));
            issueProducts<kRows, kKeys>(gradients, shared.upstream(place.index) + mine, shared.values(stage.index));
            wgmma::wait<2>(); // the sums of the tile before are done
            const bool first = used == 0;
            if (!first) {
                release(used);
            }
            used = shared.empty(stage.index);
            wgmma::wait<0>();
            differentiateTile(p, rows, note, scores, gradients, largest);
            pack<kKeys>(scores, slopes);
            issueSums<kKeys>(sums, slopes, shared.keys(stage.index), first ? 0 : 1);
        }
        release(shared.queriesEmpty(place.index)); // the products that read queries have ended
        wgmma::wait<0>();
        release(used);
        storeGradient(p, rows, sums);
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
        for (int stage = 0; stage < kRowStages; ++stage) {
            barrier::init(shared.queriesFull(stage), 1);
            barrier::init(shared.queriesEmpty(stage), kReleases);
        }
        for (int stage = 0; stage < kStages; ++stage) {
            barrier::init(shared.full(stage), 1);
            barrier::init(shared.empty(stage), kReleases);
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

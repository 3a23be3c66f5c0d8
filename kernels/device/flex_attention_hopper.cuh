// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention forward on Hopper (sm_90a; head dims 64 and 128). A persistent block owns 128 queries of one head at a time:
// one thread brings tiles of queries, keys and values by tensor maps; two warpgroups own 64 rows each. A warpgroup issues the
// next tile's scores and the last tile's weighted values together and does its softmax while they run; the two warpgroups
// take turns in issuing, so that one's softmax hides behind the other's products.
// Masks, scores and results are those of flex_attention.cuh.

#include "device/flex_attention_hopper_tiles.cuh"

namespace vt {

namespace flex {

inline constexpr int kKeys = 128;
inline constexpr int kStages = kDim == 64 ? 4 : 2;
using Stage = RingPlace<kStages>;
inline constexpr int kTileBytes = kKeys * kDim * 2; ///< of keys or values
inline constexpr int kQueryBytes = kRows * kDim * 2;
inline constexpr int kQueryStages = 2;
inline constexpr int kRingAt = kQueryStages * kQueryBytes;
inline constexpr int kNotesAt = kRingAt + 2 * kStages * kTileBytes;
inline constexpr int kBarriersAt = kNotesAt + kStages * Note::kBytes;
inline constexpr int kTurn = 2; ///< the first of two named barriers for taking turns

/// Shared memory: queries, kStages tiles of keys, as many of values, notes, barriers.
struct Shared {
    u32 base;

    __device__ __forceinline__ u32 queries(int stage) const { return base + static_cast<u32>(stage * kQueryBytes); }
    __device__ __forceinline__ u32 keys(int stage) const {
        return base + kRingAt + static_cast<u32>(stage * kTileBytes);
    }
    __device__ __forceinline__ u32 values(int stage) const { return keys(kStages + stage); }
    __device__ __forceinline__ u32 note(int stage) const {
        return base + kNotesAt + static_cast<u32>(stage * Note::kBytes);
    }
    __device__ __forceinline__ u32 barrier(int index) const { return base + kBarriersAt + static_cast<u32>(index * 8); }
    __device__ __forceinline__ u32 queriesFull(int stage) const { return barrier(stage); }
    __device__ __forceinline__ u32 queriesEmpty(int stage) const { return barrier(kQueryStages + stage); }
    __device__ __forceinline__ u32 keysFull(int stage) const { return barrier(2 * kQueryStages + stage); }
    __device__ __forceinline__ u32 keysEmpty(int stage) const { return keysFull(kStages + stage); }
    __device__ __forceinline__ u32 valuesFull(int stage) const { return keysFull(2 * kStages + stage); }
    __device__ __forceinline__ u32 valuesEmpty(int stage) const { return keysFull(3 * kStages + stage); }
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
/// What the tile's rows see together; a warp works it out, four rows a lane.
__device__ __forceinline__ IntervalWalk<kKeys> walkOf(const FlexAttentionParams& p, const Work& work) {
    int low = p.keys;
    int high = -1;
    int fullLow = 0;
    int fullHigh = p.keys - 1;
#if VT_MASK == 2
    for (int i = 0; i < kRows / 32; ++i) {
        const int query = work.begin + i * 32 + static_cast<int>(threadIdx.x) % 32;
        if (query < p.queries) {
            int first = 0;
            int last = 0;
            intervalRows(work.batch, work.head, query, p.maskCaptures, first, last);
            first = max(first, 0);
            last = min(last, p.keys - 1);
            if (first <= last) {
                low = min(low, first);
                high = max(high, last);
            }
            fullLow = max(fullLow, first);
            fullHigh = min(fullHigh, last);
        }
    }
    low = __reduce_min_sync(kAllLanes, low);
    high = __reduce_max_sync(kAllLanes, high);
    fullLow = __reduce_max_sync(kAllLanes, fullLow);
    fullHigh = __reduce_min_sync(kAllLanes, fullHigh);
#else
    low = 0;
    high = p.keys - 1;
#endif
    return {low, high, fullLow, fullHigh};
}
#endif

/// A tile of keys and its values.
__device__ __forceinline__ void bringTile(const FlexAttentionParams& p, const Shared& shared, const Work& work,
                                          const Stage& stage, const Note& note) {
    const int kvHead = work.head / (p.heads / p.kvHeads);
    barrier::wait(shared.keysEmpty(stage.index), stage.phase ^ 1);
    note.write(shared.note(stage.index));
    barrier::arriveExpect(shared.keysFull(stage.index), kTileBytes);
    bring<kKeys>(shared.keys(stage.index), &p.keyMap, note.begin, kvHead, work.batch, shared.keysFull(stage.index));
    barrier::wait(shared.valuesEmpty(stage.index), stage.phase ^ 1);
    barrier::arriveExpect(shared.valuesFull(stage.index), kTileBytes);
    bring<kKeys>(shared.values(stage.index), &p.valueMap, note.begin, kvHead, work.batch,
                 shared.valuesFull(stage.index));
}

/// One warp walks, its first lane copies.
__device__ void produce(const FlexAttentionParams& p, const Shared& shared) {
    Stage stage;
    RingPlace<kQueryStages> queries;
    const bool copies = threadIdx.x % 32 == 0;
    Schedule schedule = scheduleOf(p);
    while (schedule.next()) {
        const Work work(p, schedule);
        auto walk = walkOf(p, work);
        if (copies) {
            const u32 full = shared.queriesFull(queries.index);
            barrier::wait(shared.queriesEmpty(queries.index), queries.phase ^ 1);
            barrier::arriveExpect(full, kQueryBytes);
            bring<kRows>(shared.queries(queries.index), &p.queryMap, work.begin, work.head, work.batch, full);
            do {
                bringTile(p, shared, work, stage, Note::of(walk, work.head));
                stage.next();
            } while (!walk.done());
        }
        queries.next();
        __syncwarp();
    }
}

using Scores = float[kKeys / 2];
using Sums = float[kDim / 2];
using Weights = Fragments<kKeys>;

/// A thread's two rows: query, running maximum (base 2) and sum.
struct Rows {
    int batch, head, query; ///< of the first; the second is 8 further
    float maximum[2];
    float total[2];
};

/// The score program over a tile, then the mask where the tile needs it.
__device__ __forceinline__ void applyPrograms(const FlexAttentionParams& p, const Rows& rows, const Note& note,
                                              Scores& scores) {
    const int keyBegin = note.begin;
    const bool partial = note.partial();
    const int t = static_cast<int>(threadIdx.x) % 4;
    if constexpr (VT_SCORE != 0) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = half * 2; i < kKeys / 2; i += i % 2 == 0 ? 1 : 3) {
                scores[i] = scoreMod(scores[i] * p.scale, rows.batch, rows.head, rows.query + half * 8,
                                     keyBegin + i / 4 * 8 + 2 * t + i % 2, p.scoreCaptures);
            }
        }
    }
    if (!partial && keyBegin + kKeys <= p.keys) {
        return;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int low = 0;
        int high = note.nothing() ? -1 : p.keys - 1;
        if constexpr (VT_MASK == 2) {
            intervalRows(rows.batch, rows.head, rows.query + half * 8, p.maskCaptures, low, high);
            high = note.nothing() ? -1 : min(high, p.keys - 1);
        }
#pragma unroll
        for (int i = half * 2; i < kKeys / 2; i += i % 2 == 0 ? 1 : 3) {
            const int key = keyBegin + i / 4 * 8 + 2 * t + i % 2;
            bool allowed = key >= low && key <= high;
            if constexpr (VT_MASK == 1) {
                allowed =
                    allowed && (!partial || maskMod(rows.batch, rows.head, rows.query + half * 8, key, p.maskCaptures));
            }
            scores[i] = allowed ? scores[i] : minusInfinity();
        }
    }
}

/// Scores become weights of the new maximum; `shrink` is what older sums are to be multiplied by.
__device__ __forceinline__ void softmax(Rows& rows, Scores& scores, float factor, float (&shrink)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float best = fmaxf(scores[half * 2], scores[half * 2 + 1]);
#pragma unroll
        for (int j = 1; j < kKeys / 8; ++j) {
            best = fmaxf(best, fmaxf(scores[j * 4 + half * 2], scores[j * 4 + half * 2 + 1]));
        }
        const float next = fmaxf(rows.maximum[half], quadMax(best) * factor);
        const float base = next == minusInfinity() ? 0.0F : next;
        shrink[half] = exp2Fast(rows.maximum[half] - base);
        rows.maximum[half] = next;
        float even = 0;
        float odd = 0;
#pragma unroll
        for (int j = 0; j < kKeys / 8; ++j) {
            float& first = scores[j * 4 + half * 2];
            float& second = scores[j * 4 + half * 2 + 1];
            first = exp2Fast(fmaf(first, factor, -base));
            second = exp2Fast(fmaf(second, factor, -base));
            even += first;
            odd += second;
        }
        rows.total[half] = rows.total[half] * shrink[half] + even + odd;
    }
}

__device__ __forceinline__ void storeResult(const FlexAttentionParams& p, const Rows& rows, const Sums& sums) {
    const int t = static_cast<int>(threadIdx.x) % 4;
    float sink = minusInfinity();
    if (p.sinks != nullptr) {
        sink = toFloat(static_cast<const StorageOf<VT_SINKS_DTYPE>*>(p.sinks)[rows.head]) * kLog2e;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float sum = quadSum(rows.total[half]);
        const int query = rows.query + half * 8;
        if (query >= p.queries) {
            continue;
        }
        const float best = fmaxf(rows.maximum[half], sink);
        const float base = best == minusInfinity() ? 0.0F : best;
        const float share = exp2Fast(rows.maximum[half] - base);
        const float total = sum * share + exp2Fast(sink - base);
        const float inverse = total == 0 ? 0.0F : share / total;
        T* out = rowsOf(p.out, rows.batch, rows.head) + query * p.out.rowStride + 2 * t;
#pragma unroll
        for (int j = 0; j < kDim / 8; ++j) {
            storePair(out + j * 8, sums[j * 4 + half * 2] * inverse, sums[j * 4 + half * 2 + 1] * inverse);
        }
        if (p.lse != nullptr && t == 0) {
            p.lse[(static_cast<i64>(rows.batch) * p.heads + rows.head) * p.queries + query] =
                total == 0 ? minusInfinity() : (base + log2f(total)) * kLn2;
        }
    }
}

/// Waits for this warpgroup's turn to issue products; takeTurn() of the other one ends it.
__device__ __forceinline__ void awaitTurn(int group) {
    namedBarrier(kTurn + group, 256);
}
__device__ __forceinline__ void passTurn(int group) {
    namedBarrierArrive(kTurn + 1 - group, 256);
}

/// Where a warpgroup is in the stream of tiles.
struct Cursor {
    Schedule schedule;
    RingPlace<kQueryStages> queries;
    Stage stage;
    Note note{};

    __device__ __forceinline__ void arrive(const Shared& shared) {
        barrier::wait(shared.keysFull(stage.index), stage.phase);
        note = Note::read(shared.note(stage.index));
    }
};

__device__ __forceinline__ Rows rowsOf(const FlexAttentionParams& p, const Schedule& schedule, int group) {
    const Work work(p, schedule);
    const int thread = static_cast<int>(threadIdx.x) % 128;
    return {work.batch,
            work.head,
            work.begin + group * 64 + thread / 32 * 16 + thread % 32 / 4,
            {minusInfinity(), minusInfinity()},
            {0, 0}};
}

__device__ __forceinline__ void finishValues(const Shared& shared, const Stage& stage, Sums& sums,
                                             const Weights& weights, int accumulate) {
    barrier::wait(shared.valuesFull(stage.index), stage.phase);
    issueSums<kKeys>(sums, weights, shared.values(stage.index), accumulate);
}

/// The tiles of all pieces of work are one stream: the last values of a piece are multiplied beside the first scores of
/// the next.
__device__ void consume(const FlexAttentionParams& p, const Shared& shared, int group) {
    const float factor = VT_SCORE != 0 ? kLog2e : p.scale * kLog2e;
    const u32 mine = static_cast<u32>(group * 64 * 128);
    Cursor at{scheduleOf(p)};
    if (group == 1) {
        passTurn(group); // the first turn is the first warpgroup's
    }
    if (at.schedule.next()) {
        Rows rows = rowsOf(p, at.schedule, group);
        Sums sums;
        Scores scores;
        Weights weights;
        float shrink[2];
        int accumulate = 0; ///< the first values of a piece replace the sums
        barrier::wait(shared.queriesFull(at.queries.index), at.queries.phase);
        at.arrive(shared);
        awaitTurn(group);
        issueProducts<kRows, kKeys>(scores, shared.queries(at.queries.index) + mine, shared.keys(at.stage.index));
        passTurn(group);
        wgmma::wait<0>();
        release(shared.keysEmpty(at.stage.index));
        applyPrograms(p, rows, at.note, scores);
        softmax(rows, scores, factor, shrink);
        pack<kKeys>(scores, weights);
        for (;;) {
            const bool last = at.note.last();
            const Stage before = at.stage;
            at.stage.next();
            if (last) {
                release(shared.queriesEmpty(at.queries.index));
                at.queries.next();
                if (!at.schedule.next()) {
                    finishValues(shared, before, sums, weights, accumulate);
                    wgmma::wait<0>();
                    release(shared.valuesEmpty(before.index));
                    storeResult(p, rows, sums);
                    break;
                }
                barrier::wait(shared.queriesFull(at.queries.index), at.queries.phase);
            }
            at.arrive(shared);
            awaitTurn(group);
            issueProducts<kRows, kKeys>(scores, shared.queries(at.queries.index) + mine, shared.keys(at.stage.index));
            finishValues(shared, before, sums, weights, accumulate);
            passTurn(group);
            Rows next = last ? rowsOf(p, at.schedule, group) : rows;
            wgmma::wait<1>();
            release(shared.keysEmpty(at.stage.index));
            applyPrograms(p, next, at.note, scores);
            softmax(next, scores, factor, shrink);
            wgmma::wait<0>();
            release(shared.valuesEmpty(before.index));
            if (last) {
                storeResult(p, rows, sums);
            } else {
#pragma unroll
                for (int i = 0; i < kDim / 2; ++i) {
                    sums[i] *= shrink[i / 2 % 2];
                }
            }
            accumulate = last ? 0 : 1;
            rows = next;
            pack<kKeys>(scores, weights);
        }
    }
    if (group == 0) {
        awaitTurn(group); // the other's last pass
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(384, 1)
    flex_attention_hopper(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared{sharedAddress(memory)};
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kQueryStages; ++stage) {
            barrier::init(shared.queriesFull(stage), 1);
            barrier::init(shared.queriesEmpty(stage), kGroups);
        }
        for (int stage = 0; stage < kStages; ++stage) {
            barrier::init(shared.keysFull(stage), 1);
            barrier::init(shared.keysEmpty(stage), kGroups);
            barrier::init(shared.valuesFull(stage), 1);
            barrier::init(shared.valuesEmpty(stage), kGroups);
        }
        barrier::fenceInit();
    }
    __syncthreads();
    pdl::wait();
    pdl::launchDependents();
    const int warpgroup = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == kGroups) {
        wgmma::giveRegisters<kRegistersOfProducer>();
        if (threadIdx.x < kGroups * 128 + 32) {
            produce(p, shared);
        }
    } else {
        wgmma::takeRegisters<kRegistersOfConsumer>();
        consume(p, shared, warpgroup);
    }
}

} // namespace vt

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
inline constexpr int kTileBytes = kKeys * kDim * 2; ///< of keys or values
inline constexpr int kRingAt = kRows * kDim * 2;
inline constexpr int kBarriersAt = kRingAt + 2 * kStages * kTileBytes;
inline constexpr int kTurn = 2; ///< the first of two named barriers for taking turns

/// Shared memory: queries, then kStages tiles of keys, then as many of values, then barriers.
struct Shared {
    u32 base;

    __device__ __forceinline__ u32 keys(int stage) const {
        return base + kRingAt + static_cast<u32>(stage * kTileBytes);
    }
    __device__ __forceinline__ u32 values(int stage) const {
        return base + kRingAt + static_cast<u32>((kStages + stage) * kTileBytes);
    }
    __device__ __forceinline__ u32 barrier(int index) const { return base + kBarriersAt + static_cast<u32>(index * 8); }
    __device__ __forceinline__ u32 queriesFull() const { return barrier(0); }
    __device__ __forceinline__ u32 queriesEmpty() const { return barrier(1); }
    __device__ __forceinline__ u32 keysFull(int stage) const { return barrier(2 + stage); }
    __device__ __forceinline__ u32 keysEmpty(int stage) const { return barrier(2 + kStages + stage); }
    __device__ __forceinline__ u32 valuesFull(int stage) const { return barrier(2 + 2 * kStages + stage); }
    __device__ __forceinline__ u32 valuesEmpty(int stage) const { return barrier(2 + 3 * kStages + stage); }
};

/// The item-th piece of work: heads that share keys lie side by side, the rows that see the most come first.
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
/// What the tile's rows see together. Every warp works it out for itself, four rows a lane.
__device__ __forceinline__ Walk walkOf(const FlexAttentionParams& p, const Work& work) {
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
            intervalRows(work.batch, work.head, query, p.captures, first, last);
            first = first > 0 ? first : 0;
            last = last < p.keys - 1 ? last : p.keys - 1;
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

/// One warp walks, its first lane copies.
__device__ void produce(const FlexAttentionParams& p, const Shared& shared) {
    Stage stage;
    u32 queriesPhase = 0;
    const bool copies = threadIdx.x % 32 == 0;
    const int count = workCount(p);
    for (int item = static_cast<int>(blockIdx.x); item < count; item += static_cast<int>(gridDim.x)) {
        const Work work(p, item);
        const int kvHead = work.head / (p.heads / p.kvHeads);
        Walk walk = walkOf(p, work);
        if (walk.done()) {
            continue;
        }
        if (copies) {
            barrier::wait(shared.queriesEmpty(), queriesPhase ^ 1);
            barrier::arriveExpect(shared.queriesFull(), kRows * kDim * 2);
            bring<kRows>(shared.base, &p.queryMap, work.begin, work.head, work.batch, shared.queriesFull());
        }
        queriesPhase ^= 1;
        for (; !walk.done(); walk.next(), stage.next()) {
            if (copies) {
                barrier::wait(shared.keysEmpty(stage.index), stage.phase ^ 1);
                barrier::arriveExpect(shared.keysFull(stage.index), kTileBytes);
                bring<kKeys>(shared.keys(stage.index), &p.keyMap, walk.begin(), kvHead, work.batch,
                             shared.keysFull(stage.index));
                barrier::wait(shared.valuesEmpty(stage.index), stage.phase ^ 1);
                barrier::arriveExpect(shared.valuesFull(stage.index), kTileBytes);
                bring<kKeys>(shared.values(stage.index), &p.valueMap, walk.begin(), kvHead, work.batch,
                             shared.valuesFull(stage.index));
            }
        }
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
__device__ __forceinline__ void applyPrograms(const FlexAttentionParams& p, const Rows& rows, int keyBegin,
                                              bool partial, Scores& scores) {
    const int t = static_cast<int>(threadIdx.x) % 4;
    if constexpr (VT_SCORE != 0) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = half * 2; i < kKeys / 2; i += i % 2 == 0 ? 1 : 3) {
                scores[i] = scoreMod(scores[i] * p.scale, rows.batch, rows.head, rows.query + half * 8,
                                     keyBegin + i / 4 * 8 + 2 * t + i % 2, p.captures);
            }
        }
    }
    if (!partial && keyBegin + kKeys <= p.keys) {
        return;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int low = 0;
        int high = p.keys - 1;
        if constexpr (VT_MASK == 2) {
            intervalRows(rows.batch, rows.head, rows.query + half * 8, p.captures, low, high);
            high = min(high, p.keys - 1);
        }
#pragma unroll
        for (int i = half * 2; i < kKeys / 2; i += i % 2 == 0 ? 1 : 3) {
            const int key = keyBegin + i / 4 * 8 + 2 * t + i % 2;
            bool allowed = key >= low && key <= high;
            if constexpr (VT_MASK == 1) {
                allowed =
                    allowed && (!partial || maskMod(rows.batch, rows.head, rows.query + half * 8, key, p.captures));
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

__device__ void consume(const FlexAttentionParams& p, const Shared& shared, int group) {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float factor = VT_SCORE != 0 ? kLog2e : p.scale * kLog2e;
    const u32 queries = shared.base + static_cast<u32>(group * 64 * 128);
    Stage stage;
    u32 queriesPhase = 0;
    if (group == 1) {
        passTurn(group); // the first turn is the first warpgroup's
    }
    const int count = workCount(p);
    for (int item = static_cast<int>(blockIdx.x); item < count; item += static_cast<int>(gridDim.x)) {
        const Work work(p, item);
        Rows rows{work.batch,
                  work.head,
                  work.begin + group * 64 + warp * 16 + lane / 4,
                  {minusInfinity(), minusInfinity()},
                  {0, 0}};
        Walk walk = walkOf(p, work);
        Sums sums;
        clear(sums);
        if (!walk.done()) {
            Scores scores;
            Weights weights;
            float shrink[2];
            barrier::wait(shared.queriesFull(), queriesPhase);
            queriesPhase ^= 1;
            barrier::wait(shared.keysFull(stage.index), stage.phase);
            awaitTurn(group);
            issueProducts<kRows, kKeys>(scores, queries, shared.keys(stage.index));
            passTurn(group);
            wgmma::wait<0>();
            release(shared.keysEmpty(stage.index));
            applyPrograms(p, rows, walk.begin(), walk.partial(), scores);
            softmax(rows, scores, factor, shrink);
            pack<kKeys>(scores, weights);
            walk.next();
            for (; !walk.done(); walk.next()) {
                const Stage last = stage;
                stage.next();
                barrier::wait(shared.keysFull(stage.index), stage.phase);
                awaitTurn(group);
                issueProducts<kRows, kKeys>(scores, queries, shared.keys(stage.index));
                barrier::wait(shared.valuesFull(last.index), last.phase);
                issueSums<kKeys>(sums, weights, shared.values(last.index));
                passTurn(group);
                wgmma::wait<1>();
                release(shared.keysEmpty(stage.index));
                applyPrograms(p, rows, walk.begin(), walk.partial(), scores);
                softmax(rows, scores, factor, shrink);
                wgmma::wait<0>();
                release(shared.valuesEmpty(last.index));
#pragma unroll
                for (int i = 0; i < kDim / 2; ++i) {
                    sums[i] *= shrink[i / 2 % 2];
                }
                pack<kKeys>(scores, weights);
            }
            release(shared.queriesEmpty());
            barrier::wait(shared.valuesFull(stage.index), stage.phase);
            issueSums<kKeys>(sums, weights, shared.values(stage.index));
            wgmma::wait<0>();
            release(shared.valuesEmpty(stage.index));
            stage.next();
        }
        storeResult(p, rows, sums);
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
        barrier::init(shared.queriesFull(), 1);
        barrier::init(shared.queriesEmpty(), kGroups);
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

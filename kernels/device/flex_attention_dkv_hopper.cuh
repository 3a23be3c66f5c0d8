// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention backward on Hopper, the pass for dk and dv: as flex_attention_dkv.cuh, with a warpgroup for 64 of a block's
// 128 keys. Scores and dP are made transposed (keys x queries), so that P^T and dS^T multiply from registers while the next
// tile's products wait for nothing but their turn.

#include "device/flex_attention_hopper_tiles.cuh"
#include "device/flex_attention_terms.cuh"

namespace vt {

namespace flex {

inline constexpr int kQueries = VT_COLUMNS; ///< of a tile that comes by
inline constexpr int kKeyBytes = kRows * kDim * 2;
inline constexpr int kQueryBytes = kQueries * kDim * 2;
inline constexpr int kStageBytes = 2 * kQueryBytes + 1024; ///< queries, gradOut, offsets and deltas; whole kilobytes
inline constexpr int kRingAt = 2 * kKeyBytes;
inline constexpr int kBarriersAt = kRingAt + kStages * kStageBytes;

static_assert(kQueries * 8 <= 1024, "offsets and deltas have a kilobyte");

struct Shared {
    u32 base;

    __device__ __forceinline__ u32 keys() const { return base; }
    __device__ __forceinline__ u32 values() const { return base + kKeyBytes; }
    __device__ __forceinline__ u32 queries(int stage) const {
        return base + kRingAt + static_cast<u32>(stage * kStageBytes);
    }
    __device__ __forceinline__ u32 upstream(int stage) const { return queries(stage) + kQueryBytes; }
    __device__ __forceinline__ u32 facts(int stage) const { return queries(stage) + 2 * kQueryBytes; }
    __device__ __forceinline__ u32 barrier(int index) const { return base + kBarriersAt + static_cast<u32>(index * 8); }
    __device__ __forceinline__ u32 keysFull() const { return barrier(0); }
    __device__ __forceinline__ u32 keysEmpty() const { return barrier(1); }
    __device__ __forceinline__ u32 full(int stage) const { return barrier(2 + stage); }
    __device__ __forceinline__ u32 empty(int stage) const { return barrier(2 + kStages + stage); }
};

/// 128 keys of one key head; those that the most queries see (in causal masks) come first.
struct Work {
    int batch, kvHead, begin;

    __device__ __forceinline__ Work(const FlexAttentionParams& p, int item) {
        const int tiles = ceilDiv(p.keys, kRows);
        begin = item % tiles * kRows;
        kvHead = item / tiles % p.kvHeads;
        batch = item / tiles / p.kvHeads;
    }
};

__device__ __forceinline__ int workCount(const FlexAttentionParams& p) {
    return ceilDiv(p.keys, kRows) * p.kvHeads * p.batch;
}

/// The tiles of queries of every head of the group, in order.
class GroupWalk {
public:
    __device__ __forceinline__ GroupWalk(const FlexAttentionParams& p, const Work& work)
        : p_(p), batch_(work.batch), key_(work.begin), head_(work.kvHead * (p.heads / p.kvHeads)),
          last_(head_ + p.heads / p.kvHeads), walk_(open()) {
        skip();
    }
    __device__ __forceinline__ bool done() const { return walk_.done(); }
    __device__ __forceinline__ int head() const { return head_; }
    __device__ __forceinline__ int begin() const { return walk_.begin(); }
    __device__ __forceinline__ bool partial() const { return walk_.partial(); }
    __device__ __forceinline__ void next() {
        walk_.next();
        skip();
    }

private:
#if VT_MASK == 1
    using Walk = RunWalk<kQueries>;
    __device__ __forceinline__ Walk open() const { return walkColumn<kQueries>(p_, batch_, head_, key_); }
#else
    using Walk = IntervalWalk<kQueries>;
    __device__ __forceinline__ Walk open() const { return {0, p_.queries - 1, 0, p_.queries - 1}; }
#endif
    __device__ __forceinline__ void skip() {
        while (walk_.done() && head_ + 1 < last_) {
            ++head_;
            walk_ = open();
        }
    }

    const FlexAttentionParams& p_;
    int batch_, key_, head_, last_;
    Walk walk_;
};

__device__ void produce(const FlexAttentionParams& p, const Shared& shared) {
    Stage stage;
    u32 keysPhase = 0;
    const int count = workCount(p);
    for (int item = static_cast<int>(blockIdx.x); item < count; item += static_cast<int>(gridDim.x)) {
        const Work work(p, item);
        GroupWalk walk(p, work);
        if (walk.done()) {
            continue;
        }
        barrier::wait(shared.keysEmpty(), keysPhase ^ 1);
        keysPhase ^= 1;
        barrier::arriveExpect(shared.keysFull(), 2 * kKeyBytes);
        bring<kRows>(shared.keys(), &p.keyMap, work.begin, work.kvHead, work.batch, shared.keysFull());
        bring<kRows>(shared.values(), &p.valueMap, work.begin, work.kvHead, work.batch, shared.keysFull());
        for (; !walk.done(); walk.next(), stage.next()) {
            const u32 full = shared.full(stage.index);
            const i64 row = (static_cast<i64>(work.batch) * p.heads + walk.head()) * p.paddedQueries + walk.begin();
            barrier::wait(shared.empty(stage.index), stage.phase ^ 1);
            barrier::arriveExpect(full, 2 * kQueryBytes + kQueries * 8);
            bring<kQueries>(shared.queries(stage.index), &p.queryMap, walk.begin(), walk.head(), work.batch, full);
            bring<kQueries>(shared.upstream(stage.index), &p.gradOutMap, walk.begin(), walk.head(), work.batch, full);
            copyBulk(shared.facts(stage.index), p.offsets + row, kQueries * 4, full);
            copyBulk(shared.facts(stage.index) + kQueries * 4, p.delta + row, kQueries * 4, full);
        }
    }
}

using Scores = float[kQueries / 2];

/// Where a thread's keys lie: the second is 8 further.
struct Keys {
    int batch, head, key;
};

/// Scores become weights (P^T), dP^T becomes gradients of the scores.
__device__ __forceinline__ void differentiateTile(const FlexAttentionParams& p, const Keys& at, int queryBegin,
                                                  bool tested, bool partial, u32 facts, Scores& scores,
                                                  Scores& gradients, TermSums& terms) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int j = 0; j < kQueries / 8; ++j) {
        float offset[2];
        float delta[2];
        const u32 place = facts + static_cast<u32>((j * 8 + 2 * t) * 4);
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(offset[0]), "=f"(offset[1]) : "r"(place));
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(delta[0]), "=f"(delta[1]) : "r"(place + kQueries * 4));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Element element{at.batch, at.head, queryBegin + j * 8 + 2 * t + i % 2, at.key + i / 2 * 8};
            // differentiate() leaves the gradient in its score and the weight in dP: here their products want them apart.
            float gradient = scores[j * 4 + i];
            float weight = gradients[j * 4 + i];
            differentiate(p, element, tested, partial, offset[i % 2], delta[i % 2], gradient, weight, terms);
            scores[j * 4 + i] = weight;
            gradients[j * 4 + i] = gradient;
        }
    }
}

__device__ void consume(const FlexAttentionParams& p, const Shared& shared, int group) {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const u32 keys = shared.keys() + static_cast<u32>(group * 64 * 128);
    const u32 values = shared.values() + static_cast<u32>(group * 64 * 128);
    Stage stage;
    u32 keysPhase = 0;
    TermSums terms(p);
    const int count = workCount(p);
    for (int item = static_cast<int>(blockIdx.x); item < count; item += static_cast<int>(gridDim.x)) {
        const Work work(p, item);
        GroupWalk walk(p, work);
        Keys at{work.batch, 0, work.begin + group * 64 + warp * 16 + lane / 4};
        float keySums[kDim / 2];
        float valueSums[kDim / 2];
        clear(keySums);
        clear(valueSums);
        if (!walk.done()) {
            barrier::wait(shared.keysFull(), keysPhase);
            keysPhase ^= 1;
            Fragments<kQueries> weights;
            Fragments<kQueries> slopes;
            for (; !walk.done(); walk.next(), stage.next()) {
                Scores scores;
                Scores gradients;
                barrier::wait(shared.full(stage.index), stage.phase);
                issueProducts<kRows, kQueries>(scores, keys, shared.queries(stage.index));
                issueProducts<kRows, kQueries>(gradients, values, shared.upstream(stage.index));
                wgmma::wait<0>();
                at.head = walk.head();
                const bool tested =
                    walk.partial() || work.begin + kRows > p.keys || walk.begin() + kQueries > p.queries;
                differentiateTile(p, at, walk.begin(), tested, walk.partial(), shared.facts(stage.index), scores,
                                  gradients, terms);
                pack<kQueries>(scores, weights);
                pack<kQueries>(gradients, slopes);
                issueSums<kQueries>(valueSums, weights, shared.upstream(stage.index));
                issueSums<kQueries>(keySums, slopes, shared.queries(stage.index));
                wgmma::wait<0>();
                release(shared.empty(stage.index));
            }
            release(shared.keysEmpty());
        }
        storeRows(keySums, rowsOf(p.dk, work.batch, work.kvHead), p.dk.rowStride, at.key, p.keys, p.scale);
        storeRows(valueSums, rowsOf(p.dv, work.batch, work.kvHead), p.dv.rowStride, at.key, p.keys, 1.0F);
    }
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        terms.finish();
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(384, 1)
    flex_attention_dkv_hopper(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared{sharedAddress(memory)};
    if (threadIdx.x == 0) {
        barrier::init(shared.keysFull(), 1);
        barrier::init(shared.keysEmpty(), kGroups);
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

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

inline constexpr int kQueries = 64; ///< of a tile that comes by
inline constexpr int kStages = 3;
using Stage = RingPlace<kStages>;
inline constexpr int kKeyBytes = kRows * kDim * 2;
inline constexpr int kQueryBytes = kQueries * kDim * 2;
inline constexpr int kFactBytes = 2 * kQueries * 4; ///< offsets and deltas
inline constexpr int kRowStages = 2;                ///< buffers of keys and values
inline constexpr bool kSumsOverlap = kDim <= 64;    ///< a tile's sums run while the next one's scores are made
inline constexpr int kRingAt = 2 * kRowStages * kKeyBytes;
inline constexpr int kFactsAt = kRingAt + 2 * kStages * kQueryBytes;
inline constexpr int kNotesAt = kFactsAt + kStages * kFactBytes;
inline constexpr int kBarriersAt = kNotesAt + kStages * Note::kBytes;

struct Shared {
    u32 base;

    __device__ __forceinline__ u32 keys(int stage) const { return base + static_cast<u32>(2 * stage * kKeyBytes); }
    __device__ __forceinline__ u32 values(int stage) const { return keys(stage) + kKeyBytes; }
    __device__ __forceinline__ u32 queries(int stage) const {
        return base + kRingAt + static_cast<u32>(2 * stage * kQueryBytes);
    }
    __device__ __forceinline__ u32 upstream(int stage) const { return queries(stage) + kQueryBytes; }
    __device__ __forceinline__ u32 facts(int stage) const {
        return base + kFactsAt + static_cast<u32>(stage * kFactBytes);
    }
    __device__ __forceinline__ u32 note(int stage) const {
        return base + kNotesAt + static_cast<u32>(stage * Note::kBytes);
    }
    __device__ __forceinline__ u32 barrier(int index) const { return base + kBarriersAt + static_cast<u32>(index * 8); }
    __device__ __forceinline__ u32 keysFull(int stage) const { return barrier(stage); }
    __device__ __forceinline__ u32 keysEmpty(int stage) const { return barrier(kRowStages + stage); }
    __device__ __forceinline__ u32 full(int stage) const { return barrier(2 * kRowStages + stage); }
    __device__ __forceinline__ u32 empty(int stage) const { return full(kStages + stage); }
};

/// 128 keys of one key head; those that the most queries see (in causal masks) come first.
struct Work {
    int batch, kvHead, begin;

    __device__ __forceinline__ Work(const FlexAttentionParams& p, const Schedule& schedule)
        : batch(schedule.head() / p.kvHeads), kvHead(schedule.head() % p.kvHeads), begin(schedule.tile() * kRows) {}
};

__device__ __forceinline__ Schedule scheduleOf(const FlexAttentionParams& p) {
    return {ceilDiv(p.keys, kRows), p.batch * p.kvHeads, static_cast<i64>(p.queries) * kDim * 4 * (p.heads / p.kvHeads),
            1};
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

__device__ __forceinline__ void bringTile(const FlexAttentionParams& p, const Shared& shared, const Work& work,
                                          const Stage& stage, const Note& note) {
    const u32 full = shared.full(stage.index);
    barrier::wait(shared.empty(stage.index), stage.phase ^ 1);
    note.write(shared.note(stage.index));
    barrier::arriveExpect(full, 2 * kQueryBytes + kFactBytes);
    const i64 row = (static_cast<i64>(work.batch) * p.heads + note.head) * p.paddedQueries + note.begin;
    bring<kQueries>(shared.queries(stage.index), &p.queryMap, note.begin, note.head, work.batch, full);
    bring<kQueries>(shared.upstream(stage.index), &p.gradOutMap, note.begin, note.head, work.batch, full);
    copyBulk(shared.facts(stage.index), p.offsets + row, kQueries * 4, full);
    copyBulk(shared.facts(stage.index) + kQueries * 4, p.delta + row, kQueries * 4, full);
}

__device__ void produce(const FlexAttentionParams& p, const Shared& shared) {
    Stage stage;
    RingPlace<kRowStages> keys;
    for (Schedule schedule = scheduleOf(p); schedule.next(); keys.next()) {
        const Work work(p, schedule);
        const u32 full = shared.keysFull(keys.index);
        GroupWalk walk(p, work);
        barrier::wait(shared.keysEmpty(keys.index), keys.phase ^ 1);
        barrier::arriveExpect(full, 2 * kKeyBytes);
        bring<kRows>(shared.keys(keys.index), &p.keyMap, work.begin, work.kvHead, work.batch, full);
        bring<kRows>(shared.values(keys.index), &p.valueMap, work.begin, work.kvHead, work.batch, full);
        do {
            const int head = walk.head();
            bringTile(p, shared, work, stage, Note::of(walk, head));
            stage.next();
        } while (!walk.done());
    }
}

using Scores = float[kQueries / 2];

/// Where a thread's keys lie: the second is 8 further.
struct Keys {
    int batch, head, key;
};

/// Scores become weights (P^T), dP^T becomes gradients of the scores.
__device__ __forceinline__ void differentiateTile(const FlexAttentionParams& p, const Keys& at, const Note& note,
                                                  u32 facts, Scores& scores, Scores& gradients, TermSums& terms) {
    const bool tested = note.partial() || at.key / kRows * kRows + kRows > p.keys || note.begin + kQueries > p.queries;
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
            const Element element{at.batch, at.head, note.begin + j * 8 + 2 * t + i % 2, at.key + i / 2 * 8};
            // differentiate() leaves the gradient in its score and the weight in dP: here their products want them apart.
            float gradient = scores[j * 4 + i];
            float weight = gradients[j * 4 + i];
            differentiate(p, element, tested, note.partial(), note.nothing(), offset[i % 2], delta[i % 2], gradient,
                          weight, terms);
            scores[j * 4 + i] = weight;
            gradients[j * 4 + i] = gradient;
        }
    }
}

using Sums = float[kDim / 2];

__device__ __forceinline__ void storeGradients(const FlexAttentionParams& p, const Keys& at, int kvHead,
                                               const Sums& keySums, const Sums& valueSums) {
    storeRows(keySums, rowsOf(p.dk, at.batch, kvHead), p.dk.rowStride, at.key, p.keys, p.scale);
    storeRows(valueSums, rowsOf(p.dv, at.batch, kvHead), p.dv.rowStride, at.key, p.keys, 1.0F);
}

__device__ void consume(const FlexAttentionParams& p, const Shared& shared, int group) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const u32 mine = static_cast<u32>(group * 64 * 128);
    Stage stage;
    RingPlace<kRowStages> place;
    TermSums terms(p);
    for (Schedule schedule = scheduleOf(p); schedule.next(); place.next()) {
        const Work work(p, schedule);
        Keys at{work.batch, 0, work.begin + group * 64 + thread / 32 * 16 + thread % 32 / 4};
        barrier::wait(shared.keysFull(place.index), place.phase);
        Sums keySums;
        Sums valueSums;
        Fragments<kQueries> weights;
        Fragments<kQueries> slopes;
        u32 used = 0; ///< barrier of the stage whose sums are under way; all threads arrive, for all have read facts
        for (bool last = false; !last; stage.next()) {
            Scores scores;
            Scores gradients;
            barrier::wait(shared.full(stage.index), stage.phase);
            const Note note = Note::read(shared.note(stage.index));
            last = note.last();
            issueProducts<kRows, kQueries>(scores, shared.keys(place.index) + mine, shared.queries(stage.index));
            issueProducts<kRows, kQueries>(gradients, shared.values(place.index) + mine, shared.upstream(stage.index));
            const int accumulate = used == 0 ? 0 : 1;
            if (kSumsOverlap) {
                wgmma::wait<2>(); // the sums of the tile before are done
                if (accumulate != 0) {
                    barrier::arrive(used);
                }
            }
            used = shared.empty(stage.index);
            wgmma::wait<0>();
            at.head = note.head;
            differentiateTile(p, at, note, shared.facts(stage.index), scores, gradients, terms);
            terms.endTile();
            pack<kQueries>(scores, weights);
            pack<kQueries>(gradients, slopes);
            issueSums<kQueries>(valueSums, weights, shared.upstream(stage.index), accumulate);
            issueSums<kQueries>(keySums, slopes, shared.queries(stage.index), accumulate);
            if (!kSumsOverlap) { // registers do not suffice for more
                wgmma::wait<0>();
                barrier::arrive(used);
            }
        }
        release(shared.keysEmpty(place.index)); // the products that read keys have ended
        if (kSumsOverlap) {
            wgmma::wait<0>();
            barrier::arrive(used);
        }
        storeGradients(p, at, work.kvHead, keySums, valueSums);
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
        for (int stage = 0; stage < kRowStages; ++stage) {
            barrier::init(shared.keysFull(stage), 1);
            barrier::init(shared.keysEmpty(stage), kReleases);
        }
        for (int stage = 0; stage < kStages; ++stage) {
            barrier::init(shared.full(stage), 1);
            barrier::init(shared.empty(stage), kGroups * 128);
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

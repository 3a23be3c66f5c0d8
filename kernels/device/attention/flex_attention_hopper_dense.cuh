// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The forward pass on Hopper over dense tensors: its producer and the order of its work.

#include "device/attention/flex_attention_dense.cuh"
#include "device/attention/flex_attention_hopper_stages.cuh"
#include "device/attention/flex_attention_hopper_walk.cuh"

namespace vt {

namespace flex {

inline constexpr int kLoaders = 1; ///< warps that bring tiles
inline constexpr int kFills = 1;   ///< arrivals that make a tile full
inline constexpr Registers kRegisters = kFewForProducer;

__device__ __forceinline__ void initMore(const Shared&) {}

/// What the producer says of a piece of work: 128 queries of one head; batch -1: there is no more.
__device__ __forceinline__ void writeWork(const Work& work, u32 to) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(work.batch), "r"(work.head), "r"(work.begin),
                 "r"(0)
                 : "memory");
}
/// The same in all lanes, for the compiler too.
__device__ __forceinline__ Work readWork(u32 from) {
    return {static_cast<int>(readWord(from)), static_cast<int>(readWord(from + 4)),
            static_cast<int>(readWord(from + 8))};
}

/// The pieces of work of this block. Where a mask's rows differ in length, blocks take them as they become free, the
/// longest first; otherwise in turn, the last first, because they see the most in causal masks. The producing warp
/// together.
class Queue {
public:
    __device__ __forceinline__ explicit Queue(const Params& p)
        : p_(p), schedule_(ceilDiv(p.queries, kRows), p.batch * p.heads, static_cast<i64>(p.keys) * kDim * 4,
                           p.heads / p.kvHeads) {}
    __device__ __forceinline__ Work next() {
#if VT_MASK == 1
        const int taken = threadIdx.x % 32 == 0 ? atomicAdd(p_.workCounter, 1) : 0;
        if (!schedule_.open(__shfl_sync(kAllLanes, taken, 0))) {
            return {-1, 0, 0};
        }
        const int tile = p_.tileOrder[schedule_.tile()];
#else
        if (!schedule_.next()) {
            return {-1, 0, 0};
        }
        const int tile = ceilDiv(p_.queries, kRows) - 1 - schedule_.tile();
#endif
        return {schedule_.head() / p_.heads, schedule_.head() % p_.heads, tile * kRows};
    }

private:
    const Params& p_;
    Schedule schedule_;
};

#if VT_MASK == 1
__device__ __forceinline__ RunWalk<kKeys, true> walkOf(const Params& p, const Work& work) {
    return walkRow<kKeys, true>(p, work.batch, work.head, work.begin);
}
#else
__device__ __forceinline__ IntervalWalk<kKeys, true> walkOf(const Params& p, const Work& work) {
    return walkIntervals(p, work);
}
#endif

/// A tile of keys and its values.
__device__ __forceinline__ void bringTile(const Params& p, const Shared& shared, const Work& work, const Stage& stage,
                                          const Note& note) {
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

/// One warp takes work and walks, its first lane copies.
__device__ void produce(const Params& p, const Shared& shared) {
    Stage stage;
    RingPlace<kQueryStages> queries;
    const bool copies = threadIdx.x % 32 == 0;
    Queue queue(p);
    for (;; queries.next()) {
        const u32 full = shared.queriesFull(queries.index);
        if (copies) { // work is taken late: others may become free sooner
            barrier::wait(shared.queriesEmpty(queries.index), queries.phase ^ 1);
        }
        const Work work = queue.next();
        if (copies) {
            writeWork(work, shared.record(queries.index));
        }
        if (work.batch < 0) {
            if (copies) {
                barrier::arrive(full);
            }
            return;
        }
        auto walk = walkOf(p, work);
        if (copies) {
            barrier::arriveExpect(full, kQueryBytes);
            bring<kRows>(shared.queries(queries.index), &p.queryMap, work.begin, work.head, work.batch, full);
            do {
                bringTile(p, shared, work, stage, Note::of(walk, work.head));
                stage.next();
            } while (!walk.done());
        }
        __syncwarp();
    }
}

/// The pieces of work in a consumer's order.
struct Pieces {
    RingPlace<kQueryStages> queries;
    Work work{};

    __device__ __forceinline__ explicit Pieces(const Params&) {}
    /// The first; false when there is none. Its queries have arrived then.
    __device__ __forceinline__ bool begin(const Params&, const Shared& shared) { return arrive(shared); }
    __device__ __forceinline__ bool next(const Params&, const Shared& shared) {
        queries.next();
        return arrive(shared);
    }
    __device__ __forceinline__ RowPlace rows(const Params&, const Shared&, int row) const { return {work, row}; }

private:
    __device__ __forceinline__ bool arrive(const Shared& shared) {
        barrier::wait(shared.queriesFull(queries.index), queries.phase);
        work = readWork(shared.record(queries.index));
        return work.batch >= 0;
    }
};

} // namespace flex

} // namespace vt

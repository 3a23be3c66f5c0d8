// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The forward pass on Hopper over dense tensors: its producer and the order of its work.

#include "device/flex_attention_dense.cuh"
#include "device/flex_attention_hopper_stages.cuh"
#include "device/flex_attention_hopper_walk.cuh"

namespace vt {

namespace flex {

/// 128 queries of one head; the last come first, because they see the most in causal masks.
__device__ __forceinline__ Work workOf(const Params& p, const Schedule& schedule) {
    return {schedule.head() / p.heads, schedule.head() % p.heads,
            (ceilDiv(p.queries, kRows) - 1 - schedule.tile()) * kRows};
}

__device__ __forceinline__ Schedule scheduleOf(const Params& p) {
    return {ceilDiv(p.queries, kRows), p.batch * p.heads, static_cast<i64>(p.keys) * kDim * 4, p.heads / p.kvHeads};
}

#if VT_MASK == 1
__device__ __forceinline__ RunWalk<kKeys> walkOf(const Params& p, const Work& work) {
    return walkRow<kKeys>(p, work.batch, work.head, work.begin);
}
#else
__device__ __forceinline__ IntervalWalk<kKeys> walkOf(const Params& p, const Work& work) {
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

/// One warp walks, its first lane copies.
__device__ void produce(const Params& p, const Shared& shared) {
    Stage stage;
    RingPlace<kQueryStages> queries;
    const bool copies = threadIdx.x % 32 == 0;
    Schedule schedule = scheduleOf(p);
    while (schedule.next()) {
        const Work work = workOf(p, schedule);
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

/// The pieces of work in a consumer's order.
struct Pieces {
    Schedule schedule;
    RingPlace<kQueryStages> queries;

    __device__ __forceinline__ explicit Pieces(const Params& p) : schedule(scheduleOf(p)) {}
    /// The first; false when there is none. Its queries have arrived then.
    __device__ __forceinline__ bool begin(const Params&, const Shared& shared) { return arrive(shared); }
    __device__ __forceinline__ bool next(const Params&, const Shared& shared) {
        queries.next();
        return arrive(shared);
    }
    __device__ __forceinline__ RowPlace rows(const Params& p, const Shared&, int row) const {
        return {workOf(p, schedule), row};
    }

private:
    __device__ __forceinline__ bool arrive(const Shared& shared) {
        if (!schedule.next()) {
            return false;
        }
        barrier::wait(shared.queriesFull(queries.index), queries.phase);
        return true;
    }
};

} // namespace flex

} // namespace vt

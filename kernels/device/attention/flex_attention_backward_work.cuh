// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The copying side of flex_attention_backward_hopper.cuh: shared memory, the pieces of work, the warp that brings tiles
// and the warp that adds parts of dq in their turn.

#include "device/attention/flex_attention_hopper_tiles.cuh"
#include "device/attention/flex_attention_terms.cuh"

namespace vt {

namespace flex {

inline constexpr int kTile = kDim == 64 ? 128 : 64; ///< queries that come by
inline constexpr int kStages = 2;
inline constexpr int kRowStages = 1; ///< buffers of keys and values
using Stage = RingPlace<kStages>;
inline constexpr int kKeyBytes = kRows * kDim * 2;
inline constexpr int kQueryBytes = kTile * kDim * 2;
inline constexpr int kSlopeBytes = kRows * kTile * 2;
inline constexpr int kSumElements = 2 * 64 * 64; ///< what both warpgroups hand over at a time
inline constexpr int kSumBytes = kSumElements * 4;
inline constexpr int kSumStages = 2;
inline constexpr int kFactBytes = 2 * kTile * 4; ///< offsets and deltas
inline constexpr int kRingAt = 2 * kRowStages * kKeyBytes;
inline constexpr int kSlopesAt = kRingAt + 2 * kStages * kQueryBytes;
inline constexpr int kSumsAt = kSlopesAt + 2 * kSlopeBytes;
inline constexpr int kFactsAt = kSumsAt + kSumStages * kSumBytes;
inline constexpr int kNotesAt = kFactsAt + kStages * kFactBytes; ///< of stages (two each), of the sums, of the work
inline constexpr int kNoteBytes = 16;
inline constexpr int kBarriersAt = kNotesAt + (kStages + kSumStages + kRowStages) * kNoteBytes;
inline constexpr int kShared = 1; ///< the named barrier of both consumers; those of single consumers follow it

struct Shared {
    u32 base;

    __device__ __forceinline__ u32 at(int offset) const { return base + static_cast<u32>(offset); }
    __device__ __forceinline__ u32 keys(int stage) const { return at(2 * stage * kKeyBytes); }
    __device__ __forceinline__ u32 values(int stage) const { return keys(stage) + kKeyBytes; }
    __device__ __forceinline__ u32 queries(int stage) const { return at(kRingAt + 2 * stage * kQueryBytes); }
    __device__ __forceinline__ u32 upstream(int stage) const { return queries(stage) + kQueryBytes; }
    __device__ __forceinline__ u32 slopes(int stage) const { return at(kSlopesAt + stage * kSlopeBytes); }
    __device__ __forceinline__ u32 sums(int stage) const { return at(kSumsAt + stage * kSumBytes); }
    __device__ __forceinline__ u32 facts(int stage) const { return at(kFactsAt + stage * kFactBytes); }
    __device__ __forceinline__ u32 note(int stage) const { return at(kNotesAt + stage * kNoteBytes); }
    __device__ __forceinline__ u32 tileNote(int stage) const { return note(stage) + Note::kBytes; }
    __device__ __forceinline__ u32 sumNote(int stage) const { return note(kStages + stage); }
    __device__ __forceinline__ u32 work(int stage) const { return note(kStages + kSumStages + stage); }
    __device__ __forceinline__ u32 barrier(int index) const { return at(kBarriersAt + index * 8); }
    __device__ __forceinline__ u32 keysFull(int stage) const { return barrier(stage); }
    __device__ __forceinline__ u32 keysEmpty(int stage) const { return barrier(kRowStages + stage); }
    __device__ __forceinline__ u32 full(int stage) const { return barrier(2 * kRowStages + stage); }
    __device__ __forceinline__ u32 empty(int stage) const { return full(kStages + stage); }
    __device__ __forceinline__ u32 sumsFull(int stage) const { return full(2 * kStages + stage); }
    __device__ __forceinline__ u32 sumsEmpty(int stage) const { return full(2 * kStages + kSumStages + stage); }
};

/// 128 keys of one key head and some of the heads that read it. The last keys come first: in causal masks the fewest
/// queries see them, and the order of the pieces is the order in which parts of sums are added.
struct Work {
    int batch, kvHead, part, begin;

    /// Batch -1: there is no such piece.
    __device__ __forceinline__ static Work of(const FlexAttentionParams& p, int index) {
        const int tiles = ceilDiv(p.keys, kRows);
        Schedule schedule(tiles, p.batch * p.kvHeads * p.groupParts,
                          static_cast<i64>(p.queries) * kDim * 8 * (p.heads / (p.kvHeads * p.groupParts)), 1);
        if (!schedule.open(index)) {
            return {-1, 0, 0, 0};
        }
        const int kvHead = schedule.head() / p.groupParts;
        return {kvHead / p.kvHeads, kvHead % p.kvHeads, schedule.head() % p.groupParts,
                (tiles - 1 - schedule.tile()) * kRows};
    }
    __device__ __forceinline__ void write(u32 to) const {
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(batch), "r"(kvHead), "r"(part),
                     "r"(begin)
                     : "memory");
    }
    /// The same in all lanes, for the compiler too.
    __device__ __forceinline__ static Work read(u32 from) {
        return {static_cast<int>(readWord(from)), static_cast<int>(readWord(from + 4)),
                static_cast<int>(readWord(from + 8)), static_cast<int>(readWord(from + 12))};
    }
};

/// Which tile of sums a part belongs to, and how many parts come before it; rank -1: it is no part, tile -1: no more
/// will come. A tile is 128 x 64 or 64 x 128 elements: first those of dq over batch, heads and queries; where several
/// parts of a group add to the same keys, then those of dk and dv over batch, key heads and keys, with kDim / 64 of
/// each for 128 keys.
struct SumNote {
    int tile, rank;

    __device__ __forceinline__ void write(u32 to) const {
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(tile), "r"(rank) : "memory");
    }
    __device__ __forceinline__ static SumNote read(u32 from) {
        SumNote note;
        asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(note.tile), "=r"(note.rank) : "r"(from) : "memory");
        return note;
    }
};

/// The tiles of queries of every head of the piece, in order: head after head, or (headsInside) all heads of a tile
/// after each other. The first is kinder to the cache; but there a piece with few tiles waits for the first heads'
/// tiles of one with many.
class GroupWalk {
public:
    __device__ __forceinline__ GroupWalk(const FlexAttentionParams& p, const Work& work)
        : p_(p), batch_(work.batch), key_(work.begin), head_((work.kvHead * p.groupParts + work.part) * headsOf(p)),
          last_(head_ + headsOf(p)), walk_(open()) {
        skip();
    }
    __device__ __forceinline__ bool done() const { return walk_.done(); }
    __device__ __forceinline__ int head() const { return head_; }
    __device__ __forceinline__ int begin() const { return walk_.begin(); }
    __device__ __forceinline__ bool partial() const { return walk_.partial(); }
    __device__ __forceinline__ void next() {
        if (p_.headsInside != 0) {
            ++head_;
            if (head_ == last_) {
                head_ -= headsOf(p_);
                walk_.next();
            }
        } else {
            walk_.next();
            skip();
        }
    }

private:
    __device__ __forceinline__ static int headsOf(const FlexAttentionParams& p) {
        return p.heads / (p.kvHeads * p.groupParts);
    }
#if VT_MASK == 1
    using Walk = RunWalk<kTile>;
    __device__ __forceinline__ Walk open() const { return walkColumn<kTile>(p_, batch_, head_, key_); }
#else
    using Walk = IntervalWalk<kTile>;
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

/// How many parts of a query tile's dq come before that of a piece of work: tiles of keys after its own that the
/// queries see. The lanes of a warp count for 32 tiles in a row.
class Ranks {
public:
    __device__ __forceinline__ explicit Ranks(const Work& work) : work_(work) {}
    __device__ __forceinline__ int of(const FlexAttentionParams& p, const Note& note) {
        const int tiles = ceilDiv(p.keys, kRows);
        if (note.nothing()) {
            return -1;
        }
#if VT_MASK == 1
        const int tile = note.begin / kTile;
        const int head = p.maskHeads == 1 ? 0 : note.head;
        if (tile < first_ || tile >= first_ + 32 || head != head_) {
            first_ = tile;
            head_ = head;
            mine_ = count(p, min((tile + static_cast<int>(threadIdx.x) % 32) * kTile, p.queries - 1), tiles);
        }
        return __shfl_sync(kAllLanes, mine_, tile - first_);
#else
        return tiles - 1 - work_.begin / kRows;
#endif
    }

private:
    __device__ __forceinline__ int count(const FlexAttentionParams& p, int query, int tiles) const {
        const i64 list = rowList(p, work_.batch, head_, query);
        const int blockTiles = p.keyBlock / kRows;
        const int next = work_.begin / kRows + 1;
        const i64 end = p.rowOffsets[list + 1];
        int later = 0;
#pragma unroll 1
        for (i64 i = p.rowOffsets[list]; i < end; ++i) {
            const FlexRun run = p.rowRuns[i];
            const int first = run.first * blockTiles;
            later += max(min(first + abs(run.count) * blockTiles, tiles) - max(first, next), 0);
        }
        return later;
    }

    const Work& work_;
    int first_ = 0, head_ = -1, mine_ = 0;
};

__device__ __forceinline__ void bringTile(const FlexAttentionParams& p, const Shared& shared, const Work& work,
                                          const Stage& stage, const Note& note) {
    const u32 full = shared.full(stage.index);
    barrier::wait(shared.empty(stage.index), stage.phase ^ 1);
    note.write(shared.note(stage.index));
    barrier::arriveExpect(full, 2 * kQueryBytes + kFactBytes);
    const i64 row = (static_cast<i64>(work.batch) * p.heads + note.head) * p.paddedQueries + note.begin;
    bring<kTile>(shared.queries(stage.index), &p.queryMap, note.begin, note.head, work.batch, full);
    bring<kTile>(shared.upstream(stage.index), &p.gradOutMap, note.begin, note.head, work.batch, full);
    copyBulk(shared.facts(stage.index), p.offsets + row, kTile * 4, full);
    copyBulk(shared.facts(stage.index) + kTile * 4, p.delta + row, kTile * 4, full);
}

/// Keys and values of a piece of work, and which it is.
__device__ __forceinline__ void bringWork(const FlexAttentionParams& p, const Shared& shared, const Work& work,
                                          const RingPlace<kRowStages>& place) {
    const u32 full = shared.keysFull(place.index);
    barrier::wait(shared.keysEmpty(place.index), place.phase ^ 1);
    work.write(shared.work(place.index));
    if (work.batch < 0) {
        barrier::arrive(full);
        return;
    }
    barrier::arriveExpect(full, 2 * kKeyBytes);
    bring<kRows>(shared.keys(place.index), &p.keyMap, work.begin, work.kvHead, work.batch, full);
    bring<kRows>(shared.values(place.index), &p.valueMap, work.begin, work.kvHead, work.batch, full);
}

/// One warp walks and counts, its first lane takes pieces of work and copies.
__device__ void produce(const FlexAttentionParams& p, const Shared& shared) {
    const bool copies = threadIdx.x % 32 == 0;
    Stage stage;
    RingPlace<kRowStages> place;
    for (;; place.next()) {
        // Not sooner: others may wait for what has been taken.
        const int taken = copies ? atomicAdd(p.workCounter, 1) : 0;
        const Work work = Work::of(p, __shfl_sync(kAllLanes, taken, 0));
        if (copies) {
            bringWork(p, shared, work, place);
        }
        if (work.batch < 0) {
            return;
        }
        GroupWalk walk(p, work);
        Ranks ranks(work);
        do {
            const int head = walk.head();
            const Note note = Note::of(walk, head);
            if (copies) {
                bringTile(p, shared, work, stage, note);
            }
            __syncwarp();
            const int rank = ranks.of(p, note);
            if (copies) {
                const int tiles = p.paddedQueries / kTile;
                SumNote{(work.batch * p.heads + note.head) * tiles + note.begin / kTile, rank}.write(
                    shared.tileNote(stage.index));
                barrier::arrive(shared.full(stage.index));
            }
            stage.next();
        } while (!walk.done());
    }
}

__device__ __forceinline__ int loadAcquire(const int* from) {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
__device__ __forceinline__ void storeRelease(int* to, int value) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
/// Orders bulk copies to global memory with ordinary accesses to it.
__device__ __forceinline__ void fenceGlobalProxy() {
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/// One lane of a warp for each stage of sums: the first part of a tile replaces what is there, others are added when it
/// is their turn.
__device__ void addSums(const FlexAttentionParams& p, const Shared& shared, int stage) {
    if (threadIdx.x % 32 != 0) {
        return;
    }
    for (u32 phase = 0;; phase ^= 1) {
        barrier::wait(shared.sumsFull(stage), phase);
        const SumNote note = SumNote::read(shared.sumNote(stage));
        if (note.tile < 0) {
            return;
        }
        int* turn = p.sumTurns + note.tile;
        if (note.rank >= 0) {
            float* to = p.sums + static_cast<i64>(note.tile) * kSumElements;
            if (note.rank == 0) {
                storeBulk(to, shared.sums(stage), kSumBytes);
            } else {
                while (loadAcquire(turn) != note.rank) {
                }
                fenceGlobalProxy();
                addBulk(to, shared.sums(stage), kSumBytes);
            }
            storeBulkCommit();
            storeBulkWaitRead<0>();
        }
        barrier::arrive(shared.sumsEmpty(stage));
        if (note.rank >= 0) {
            storeBulkWait();
            fenceGlobalProxy();
            storeRelease(turn, note.rank + 1);
        }
    }
}

} // namespace flex

} // namespace vt

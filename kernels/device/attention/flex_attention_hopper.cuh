// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention forward on Hopper (sm_90a; head dims 64, 96 and 128). A persistent block owns 128 queries of one head
// at a time: one thread brings tiles of queries, keys and values by tensor maps; two warpgroups own 64 rows each, and
// work on slices of 64 keys. While a warpgroup makes weights of one slice, two products are under way: the values of
// the slice before it, times their weights, and the scores of the slice after it. So neither waits for the other, nor
// one warpgroup for its neighbour. Masks, scores and results are those of flex_attention.cuh.

#include "device/attention/flex_attention_hopper_rows.cuh"

namespace vt {

namespace flex {

/// This warpgroup's 64 rows of queries, as operands. (Products that read them from shared memory read twice as much
/// there, and were no faster.)
using Queries = Fragments<kDim>;
__device__ __forceinline__ void loadQueries(const Shared& shared, int stage, int group, Queries& queries) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int row = group * 64 + thread / 32 * 16 + thread % 16;
    const u32 from = shared.queries(stage);
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
        u32(&word)[4] = queries[k];
        loadMatrix4(word, from + static_cast<u32>(k / 4 * kRows * 128) +
                              swizzled<128>(row, k % 4 * 32 + thread / 16 % 2 * 16));
        asm volatile("" : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])::"memory");
    }
}

/// scores (64 x kSlice) = queries keys^T.
__device__ __forceinline__ void issueScores(Scores& scores, const Queries& queries, u32 keys, int slice) {
    const u64 tile = wgmma::descriptor128(keys + static_cast<u32>(slice * kSlice * 128));
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < kDimSteps; ++k) {
        const u64 right = wgmma::further(tile, static_cast<u32>(k / 4 * (kKeys * 128 / 16) + k % 4 * 2));
        if (k == 0) {
            wgmma::Product<T, kSlice>::first(scores, queries[k], right);
        } else {
            wgmma::Product<T, kSlice>::run(scores, queries[k], right, 1);
        }
    }
    wgmma::commit();
}

/// sums (64 x headDim) += weights values (= where `accumulate` is 0).
__device__ __forceinline__ void issueValues(Sums& sums, const Weights& weights, u32 values, int slice, int accumulate) {
    const u64 tile = wgmma::descriptor128(values + static_cast<u32>(slice * kSlice * 128), kKeys * 128);
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < kSlice / 16; ++k) {
        wgmma::Product<T, kDim>::template run<1>(sums, weights[k], wgmma::further(tile, static_cast<u32>(128 * k)),
                                                 k > 0 ? 1 : accumulate);
    }
    wgmma::commit();
}

/// A warpgroup's way through the stream of tiles: those of all pieces of work, one after the other.
struct Consumer {
    const Params& p;
    const Shared& shared;
    int group;
    Pieces pieces;
    Stage stage{};    ///< the tile whose scores are being weighed
    Note note{};      ///< and what it is
    bool more = true; ///< there is a tile after it
    Stage nextStage{};
    Note nextNote{};
    bool valuesThere = false, nextKeysThere = false;
    int before = -1; ///< the stage of the tile before it; -1: there is none

    __device__ __forceinline__ Rows rows() const {
        const int row = group * 64 + rowOfThread(static_cast<int>(threadIdx.x) % 128);
        return {pieces.rows(p, shared, row), {Rows::kNothing, Rows::kNothing}, {0, 0}};
    }
    __device__ __forceinline__ bool begin(Queries& queries) {
        if (!pieces.begin(p, shared)) {
            return false;
        }
        loadQueries(shared, pieces.queries.index, group, queries);
        barrier::wait(shared.keysFull(stage.index), stage.phase);
        note = Note::read(shared.note(stage.index));
        return true;
    }
    /// Asks for this tile's values and the keys after them.
    __device__ __forceinline__ void ask() {
        nextStage = stage;
        nextStage.next();
        valuesThere = barrier::test(shared.valuesFull(stage.index), stage.phase);
        nextKeysThere = barrier::test(shared.keysFull(nextStage.index), nextStage.phase);
    }
    __device__ __forceinline__ void awaitValues() const {
        if (!valuesThere) {
            barrier::wait(shared.valuesFull(stage.index), stage.phase);
        }
    }
    /// Finds the next tile; its queries where it begins a piece of work.
    __device__ __forceinline__ void look(Queries& queries) {
        if (note.last()) {
            more = pieces.next(p, shared);
            if (more) {
                loadQueries(shared, pieces.queries.index, group, queries);
            }
        }
        if (more) {
            if (!nextKeysThere) {
                barrier::wait(shared.keysFull(nextStage.index), nextStage.phase);
            }
            nextNote = Note::read(shared.note(nextStage.index));
        }
    }
    __device__ __forceinline__ void goOn() {
        before = stage.index;
        stage = nextStage;
        note = nextNote;
    }
    /// The tile before is no longer read, nor this one's keys.
    __device__ __forceinline__ void releaseRead() const {
        release(shared.keysEmpty(stage.index));
        if (before >= 0) {
            release(shared.valuesEmpty(before));
        }
    }
    /// The queries of the piece of work before this one, by all threads that may have read them.
    __device__ __forceinline__ void releaseQueries() const {
        static_assert(kQueryStages == 2, "the other one");
        barrier::arrive(shared.queriesEmpty(1 - pieces.queries.index));
    }
};

/// Weights of a slice; products may be under way meanwhile.
__device__ __forceinline__ void weighUnder(const Consumer& me, Rows& rows, int slice, Scores& scores, float factor,
                                           bool first, Weights& weights, Sums& sums) {
    applyPrograms(me.p, rows, me.note, slice, scores);
    weighSlice(rows, scores, factor, first, weights, [&](const float(&shrink)[2]) {
        wgmma::wait<0>();
#pragma unroll
        for (int i = 0; i < kDim / 2; ++i) {
            sums[i] *= shrink[i / 2 % 2];
        }
    });
}

__device__ void consume(const Params& p, const Shared& shared, int group) {
    const float factor = VT_SCORE != 0 ? kLog2e : p.scale * kLog2e;
    Consumer me{p, shared, group, Pieces(p)};
    Queries queries;
    if (!me.begin(queries)) {
        return;
    }
    Scores scores[kSlices];
    Weights weights[kSlices];
    Sums sums;
    Rows rows = me.rows();
    bool first = true; // tile of a piece of work
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
        issueScores(scores[slice], queries, shared.keys(me.stage.index), slice);
    }
    wgmma::wait<0>();
    for (;;) {
        me.ask();
        weighUnder(me, rows, 0, scores[0], factor, first, weights[0], sums);
        wgmma::wait<0>();
        me.releaseRead();
        me.awaitValues();
        issueValues(sums, weights[0], shared.values(me.stage.index), 0, first ? 0 : 1);
        me.look(queries);
        // Where there is no next tile its scores are those of anything: branches between products are dear.
        issueScores(scores[0], queries, shared.keys(me.nextStage.index), 0);
        weighUnder(me, rows, 1, scores[1], factor, false, weights[1], sums);
        wgmma::wait<0>();
        issueValues(sums, weights[1], shared.values(me.stage.index), 1, 1);
        issueScores(scores[1], queries, shared.keys(me.nextStage.index), 1);
        if (!me.more) {
            break;
        }
        first = me.note.last();
        if (first) {
            wgmma::wait<0>();
            me.releaseQueries();
            storeResult(p, rows, sums);
            rows = me.rows();
        }
        me.goOn();
    }
    wgmma::wait<0>();
    storeResult(p, rows, sums);
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(384, 1) flex_attention_hopper(const __grid_constant__ flex::Params p) {
    using namespace flex;
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared{sharedAddress(memory)};
    if (threadIdx.x == 0) {
        initRing(shared.queriesFull(0), 1, shared.queriesEmpty(0), kGroups * 128,
                 kQueryStages); // all threads read queries
        initRing(shared.keysFull(0), kFills, shared.keysEmpty(0), kReleases, kStages);
        initRing(shared.valuesFull(0), kFills, shared.valuesEmpty(0), kReleases, kStages);
        initMore(shared);
        barrier::fenceInit();
    }
    divide<kRegisters>(
        [&] {
            if (threadIdx.x < kGroups * 128 + kLoaders * 32) {
                produce(p, shared);
            }
        },
        [&](int group) { consume(p, shared, group); });
}

} // namespace vt

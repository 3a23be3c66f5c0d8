// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention backward on Hopper (sm_90a; head dims 64 and 128), all products in one pass. A block owns 128 keys of
// one key head at a time, a warpgroup 64 of them; tiles of queries and gradOut come by. Scores and dP are made
// transposed (keys x queries), so that P^T and dS^T multiply from registers into dv and dk; dS^T also goes through
// shared memory, where both warpgroups multiply it with all 128 keys into the tile's part of dq.
//
// Parts of dq are added up in global memory, in float, in a fixed order: that of the pieces of work (last keys first).
// A tile of queries has a turn, which counts the parts that have been added; the producer counts in the mask which part
// this one is, a warp of its own waits for the turn. Pieces of work are taken in order, so what one waits for has been
// taken. flex_attention_sums.cuh makes results of the sums. Where pieces of work are few (many heads read one key
// head), several share the keys, and parts of dk and dv are added up in the same way.
//
// VT_PASS 1 only looks for the largest terms of captured tensors' gradients (flex_attention_terms.cuh).

#include "device/attention/flex_attention_backward_elements.cuh"

namespace vt {

namespace flex {

using Sums = float[kDim / 2];
static_assert(kTile * kDim == 2 * 64 * 64, "a warpgroup's part of a tile's dq is 64 x 64");

/// 64 rows of a tile of 128 as bring() would leave them: chunks of 64 columns. words(k, i) are fragments.
template <int kColumns, class Words> __device__ __forceinline__ void storeTile(u32 to, int group, Words words) {
    const int thread = freshThread();
    const int lane = thread % 32;
    const int row = group * 64 + thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) {
        storeMatrix4(to + static_cast<u32>(k / 4 * kRows * 128) + swizzled<128>(row, k % 4 * 32 + lane / 16 * 16),
                     words(k, 0), words(k, 1), words(k, 2), words(k, 3));
    }
}

/// dS^T for both warpgroups: rows of keys, 64 queries side by side.
__device__ __forceinline__ void shareSlopes(u32 to, int group, const Fragments<kTile>& slopes) {
    storeTile<kTile>(to, group, [&](int k, int i) { return slopes[k][i]; });
    fenceAsyncProxy();
    namedBarrier(kShared, kGroups * 128);
}

/// This warpgroup's 64 x 64 of the tile's dq = dS K, into registers of scores: other queries (head dim 64) or other
/// columns (128) than its neighbour's.
__device__ __forceinline__ void issueRowSums(Scores& sums, u32 slopes, u32 keys, int group) {
    const u32 mine = static_cast<u32>(group * kRows * 128);
    const u64 left = wgmma::descriptor128(kDim == 64 ? slopes + mine : slopes);
    const u64 right = wgmma::descriptor128(kDim == 64 ? keys : keys + mine);
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < kRows / 16; ++k) {
        if (k == 0) {
            wgmma::Product<T, 64>::template first<1, 1>(sums, left, right);
        } else {
            wgmma::Product<T, 64>::template run<1, 1>(sums, left + 128 * k, right + 128 * k, 1);
        }
    }
    wgmma::commit();
}

/// Hands 64 x 64 sums, from the kFirst-th on, to the warp that adds them: rows of 256 bytes in which pieces of eight
/// elements change places, so that neither writing nor reading them has bank conflicts. note() says which they are.
template <int kFirst = 0, int kSize, class MakeNote>
__device__ __forceinline__ void handOver(const Shared& shared, RingPlace<kSumStages> place, int group,
                                         const float (&sums)[kSize], MakeNote note) {
    barrier::wait(shared.sumsEmpty(place.index), place.phase ^ 1);
    if (threadIdx.x == 0) {
        note().write(shared.sumNote(place.index));
    }
    const int thread = freshThread();
    const u32 lane = static_cast<u32>(thread % 32);
    const u32 mine = shared.sums(place.index) + static_cast<u32>(group * 64 + rowOfThread(thread)) * 256 + lane % 4 * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const u32 to = mine + static_cast<u32>(half * 8 * 256) + (static_cast<u32>(j) ^ lane / 4) * 32;
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(sums[kFirst + j * 4 + half * 2]),
                         "f"(sums[kFirst + j * 4 + half * 2 + 1])
                         : "memory");
        }
    }
    fenceAsyncProxy();
    __syncwarp();
    if (lane == 0) {
        barrier::arrive(shared.sumsFull(place.index));
    }
}

__device__ __forceinline__ void endHandOvers(const Shared& shared, RingPlace<kSumStages>& place) {
    barrier::wait(shared.sumsEmpty(place.index), place.phase ^ 1);
    if (threadIdx.x == 0) {
        SumNote{-1, 0}.write(shared.sumNote(place.index));
    }
    if (threadIdx.x % 32 == 0) {
        barrier::arrive(shared.sumsFull(place.index));
    }
    place.next();
}

/// 64 rows through shared memory, where the products no longer need what lies there: `tile` as bring() leaves it.
__device__ __forceinline__ void storeThrough(u32 tile, int group, const Sums& sums, T* to, i64 stride, int begin,
                                             int end, float factor) {
    storeTile<kDim>(tile, group, [&](int k, int i) {
        return packPair<T>(sums[k * 8 + 2 * i] * factor, sums[k * 8 + 2 * i + 1] * factor);
    });
    namedBarrier(kShared + 1 + group, 128);
    constexpr int kRowPieces = kDim / 8;
    const int thread = freshThread();
#pragma unroll
    for (int i = 0; i < 64 * kRowPieces / 128; ++i) {
        const int unit = i * 128 + thread;
        const int row = group * 64 + unit / kRowPieces;
        const int piece = unit % kRowPieces;
        u32x4 value;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(tile + static_cast<u32>(piece / 8 * kRows * 128) + swizzled<128>(row, piece % 8 * 16)));
        if (begin + row < end) {
            *reinterpret_cast<u32x4*>(to + (begin + row) * stride + piece * 8) = value;
        }
    }
}

/// What a warpgroup keeps from tile to tile.
struct Consumer {
    int group;
    Stage stage{};
    RingPlace<kRowStages> place{};

    /// Stages of sums go round with those of tiles: each tile hands over once, the results of a piece of work (where
    /// they are parts) take two rounds or, at head dim 64, one, while its keys take one.
    __device__ __forceinline__ RingPlace<kSumStages> sums(const FlexAttentionParams& p) const {
        static_assert(kStages == 2 && kSumStages == 2 && kRowStages == 1, "one follows from the other");
        return {stage.index, stage.phase ^ (kDim == 64 && p.groupParts > 1 ? place.phase : 0)};
    }
};

/// dk and dv: to where they belong, or as parts of sums.
__device__ __forceinline__ void storeGradients(const FlexAttentionParams& p, const Shared& shared, Consumer& me,
                                               const Sums& keySums, const Sums& valueSums) {
    const Work work = Work::read(shared.work(me.place.index));
    if (p.groupParts == 1) {
        namedBarrier(kShared, kGroups * 128); // the neighbour's products have read the keys
        storeThrough(shared.keys(me.place.index), me.group, keySums, rowsOf(p.dk, work.batch, work.kvHead),
                     p.dk.rowStride, work.begin, p.keys, p.scale);
        storeThrough(shared.values(me.place.index), me.group, valueSums, rowsOf(p.dv, work.batch, work.kvHead),
                     p.dv.rowStride, work.begin, p.keys, 1.0F);
        fenceAsyncProxy(); // copies come to where these were
        namedBarrier(kShared + 1 + me.group, 128);
        return;
    }
    const int queryTiles = p.batch * p.heads * (p.paddedQueries / kTile);
    const int keyTile = (work.batch * p.kvHeads + work.kvHead) * ceilDiv(p.keys, kRows) + work.begin / kRows;
    const int tile = queryTiles + keyTile * (2 * kDim / 64);
    RingPlace<kSumStages> place = me.sums(p);
    const auto part = [&](int i) { return [=] { return SumNote{tile + i, work.part}; }; };
    handOver(shared, place, me.group, keySums, part(0));
    place.next();
    if constexpr (kDim == 128) {
        handOver<32>(shared, place, me.group, keySums, part(1));
        place.next();
        handOver<32>(shared, place, me.group, valueSums, part(3));
        place.next();
    }
    handOver(shared, place, me.group, valueSums, part(kDim / 64));
    place.next();
}

/// The weights of a slice of a tile, as operands, and the gradients of its scores. Afterwards `scores` is free.
template <int kPart>
__device__ __forceinline__ void weighSlice(const FlexAttentionParams& p, const Shared& shared, const Consumer& me,
                                           const Keys& at, Note note, Fragments<kTile>& weights, Scores& scores,
                                           Scores& gradients, Terms& terms) {
    const u32 mine = static_cast<u32>(me.group * 64 * 128);
    const u32 from = static_cast<u32>(kPart * kSlice * 128);
    const u32 facts = shared.facts(me.stage.index) + static_cast<u32>(kPart * kSlice * 4);
    note.begin += kPart * kSlice;
    issueProducts<kRows, kSlice>(scores, shared.keys(me.place.index) + mine, shared.queries(me.stage.index) + from);
    issueProducts<kRows, kSlice>(gradients, shared.values(me.place.index) + mine,
                                 shared.upstream(me.stage.index) + from);
    const Allowed allowed(p, at, note); // while the products are made
    wgmma::wait<1>();
#if VT_SCORE == 0
    weighTile(p, at, note, allowed, facts, scores);
    wgmma::wait<0>();
    differentiateTile(facts, scores, gradients);
#else
    wgmma::wait<0>();
    differentiateTile(p, at, note, allowed, facts, scores, gradients, terms);
#endif
    pack<kSlice, kPart * kSlice / 16>(scores, weights);
}

/// All weights; the last slice's gradients, and those before it as operands.
__device__ __forceinline__ void weighSlices(const FlexAttentionParams& p, const Shared& shared, const Consumer& me,
                                            const Keys& at, const Note& note, Fragments<kTile>& weights,
                                            Fragments<kTile>& slopes, Scores& scores, Scores& gradients, Terms& terms) {
    weighSlice<0>(p, shared, me, at, note, weights, scores, gradients, terms);
    if constexpr (kSlice < kTile) {
        pack<kSlice, 0>(gradients, slopes);
        weighSlice<1>(p, shared, me, at, note, weights, scores, gradients, terms);
    }
}

#if VT_PASS == 1
/// The largest terms of a piece of work.
__device__ __forceinline__ void consumePiece(const FlexAttentionParams& p, const Shared& shared, const Work& work,
                                             Consumer& me, Terms& terms) {
    Keys at{work.batch, 0, work.begin + me.group * 64 + rowOfThread(freshThread())};
    for (bool last = false; !last; me.stage.next()) {
        Fragments<kTile> weights;
        Fragments<kTile> slopes;
        Scores scores;
        Scores gradients;
        barrier::wait(shared.full(me.stage.index), me.stage.phase);
        const Note note = Note::read(shared.note(me.stage.index));
        last = note.last();
        at.head = note.head;
        weighSlices(p, shared, me, at, note, weights, slopes, scores, gradients, terms);
        barrier::arrive(shared.empty(me.stage.index));
    }
    release(shared.keysEmpty(me.place.index));
}
#else
/// The tiles of a piece of work, their sums and its results.
__device__ __forceinline__ void consumePiece(const FlexAttentionParams& p, const Shared& shared, const Work& work,
                                             Consumer& me, Terms& terms) {
    Keys at{work.batch, 0, work.begin + me.group * 64 + rowOfThread(freshThread())};
    Sums keySums;
    Sums valueSums;
    int accumulate = 0;
    for (bool last = false; !last; me.stage.next()) {
        Fragments<kTile> weights;
        Fragments<kTile> slopes;
        Scores scores;
        Scores gradients;
        barrier::wait(shared.full(me.stage.index), me.stage.phase);
        const Note note = Note::read(shared.note(me.stage.index));
        last = note.last();
        at.head = note.head;
        weighSlices(p, shared, me, at, note, weights, slopes, scores, gradients, terms);
        if constexpr (VT_CAPTURE_GRADIENTS != 0) {
            terms.endTile();
        }
        issueSums<kTile>(valueSums, weights, shared.upstream(me.stage.index), accumulate);
        pack<kSlice, (kTile - kSlice) / 16>(gradients, slopes);
        shareSlopes(shared.slopes(me.stage.index), me.group, slopes);
        issueRowSums(scores, shared.slopes(me.stage.index), shared.keys(me.place.index), me.group);
        issueSums<kTile>(keySums, slopes, shared.queries(me.stage.index), accumulate);
        wgmma::wait<1>();
        handOver(shared, me.sums(p), me.group, scores, [&] { return SumNote::read(shared.tileNote(me.stage.index)); });
        wgmma::wait<0>();
        barrier::arrive(shared.empty(me.stage.index));
        accumulate = 1;
    }
    storeGradients(p, shared, me, keySums, valueSums);
    release(shared.keysEmpty(me.place.index));
}
#endif

__device__ void consume(const FlexAttentionParams& p, const Shared& shared, int group) {
    Consumer me{group};
    Terms terms(p);
    for (;; me.place.next()) {
        barrier::wait(shared.keysFull(me.place.index), me.place.phase);
        const Work work = Work::read(shared.work(me.place.index));
        if (work.batch < 0) {
            break;
        }
        consumePiece(p, shared, work, me, terms);
    }
    if constexpr (VT_PASS == 2) {
        RingPlace<kSumStages> place = me.sums(p);
        for (int stage = 0; stage < kSumStages; ++stage) {
            endHandOvers(shared, place);
        }
    }
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        terms.finish();
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(384, 1)
    flex_attention_backward_hopper(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared{sharedAddress(memory)};
    if (threadIdx.x == 0) {
        initRing(shared.keysFull(0), 1, shared.keysEmpty(0), kReleases, kRowStages);
        initRing(shared.full(0), 2, shared.empty(0), kGroups * 128, kStages); // all threads read what queries need
        initRing(shared.sumsFull(0), kGroups * 4, shared.sumsEmpty(0), 1, kSumStages);
        barrier::fenceInit();
    }
    divide(
        [&] {
            const u32 warp = threadIdx.x / 32;
            if (warp == kGroups * 4) {
                produce(p, shared);
            } else if (VT_PASS == 2 && warp <= kGroups * 4 + kSumStages) {
                addSums(p, shared, static_cast<int>(warp) - kGroups * 4 - 1);
            }
        },
        [&](int group) { consume(p, shared, group); });
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention forward on Hopper (sm_90a; head dims 64 and 128). A persistent block owns 128 queries of one head at a time:
// one thread brings tiles of queries, keys and values by tensor maps; two warpgroups own 64 rows each. A warpgroup issues the
// next tile's scores and the last tile's weighted values together and does its softmax while they run; the two warpgroups
// take turns in issuing, so that one's softmax hides behind the other's products.
// Masks, scores and results are those of flex_attention.cuh.

#ifdef VT_PAGES
#include "device/flex_attention_hopper_pages.cuh"
#else
#include "device/flex_attention_hopper_dense.cuh"
#endif

namespace vt {

namespace flex {

using Scores = float[kKeys / 2];
using Sums = float[kDim / 2];
using Weights = Fragments<kKeys>;

/// A thread's two rows: running maximum (base 2) and sum.
struct Rows {
    RowPlace place;
    float maximum[2];
    float total[2];
};

/// The score program over a tile, then the mask where the tile needs it.
__device__ __forceinline__ void applyPrograms(const Params& p, const Rows& rows, const Note& note, Scores& scores) {
    const RowPlace& at = rows.place;
    const int keyBegin = note.begin;
    const bool partial = note.partial();
    const int t = static_cast<int>(threadIdx.x) % 4;
    if constexpr (VT_SCORE != 0) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = half * 2; i < kKeys / 2; i += i % 2 == 0 ? 1 : 3) {
                scores[i] = scoreMod(scores[i] * p.scale, at.batch(), at.head(half), at.query(half),
                                     keyBegin + i / 4 * 8 + 2 * t + i % 2, p.scoreCaptures);
            }
        }
    }
    if (VT_MASK == 1 ? !partial && keyBegin + kKeys - 1 <= at.lastKey(p) : !partial) {
        return;
    }
    const int firstKey = at.firstKey(p);
    const int lastKey = note.nothing() ? -1 : at.lastKey(p);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int low = firstKey;
        int high = lastKey;
        if constexpr (VT_MASK >= 2) {
            intervalRows(at.batch(), at.head(half), at.query(half), p.maskCaptures, low, high);
            low = max(low, firstKey);
            high = min(high, lastKey);
        }
#pragma unroll
        for (int i = half * 2; i < kKeys / 2; i += i % 2 == 0 ? 1 : 3) {
            const int key = keyBegin + i / 4 * 8 + 2 * t + i % 2;
            // No branches: what the mask reads comes for all elements at once.
            bool allowed = (key >= low) & (key <= high);
            if constexpr (VT_MASK == 1 || VT_MASK == 3) {
                allowed &= !partial | maskMod(at.batch(), at.head(half), at.query(half), key, p.maskCaptures);
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

__device__ __forceinline__ void storeResult(const Params& p, const Rows& rows, const Sums& sums) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float sum = quadSum(rows.total[half]);
        if (!rows.place.inside(p, half)) {
            continue;
        }
        float sink = minusInfinity();
        if (p.sinks != nullptr) {
            sink = toFloat(static_cast<const StorageOf<VT_SINKS_DTYPE>*>(p.sinks)[rows.place.head(half)]) * kLog2e;
        }
        const float best = fmaxf(rows.maximum[half], sink);
        const float base = best == minusInfinity() ? 0.0F : best;
        const float share = exp2Fast(rows.maximum[half] - base);
        const float total = sum * share + exp2Fast(sink - base);
        const float inverse = total == 0 ? 0.0F : share / total;
        auto* out = rows.place.out(p, half) + 2 * t;
#pragma unroll
        for (int j = 0; j < kDim / 8; ++j) {
            storePair(out + j * 8, sums[j * 4 + half * 2] * inverse, sums[j * 4 + half * 2 + 1] * inverse);
        }
        if (p.lse != nullptr && t == 0) {
            p.lse[rows.place.lseAt(p, half)] = total == 0 ? minusInfinity() : (base + log2f(total)) * kLn2;
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
    Pieces pieces;
    Stage stage;
    Note note{};

    __device__ __forceinline__ void arrive(const Shared& shared) {
        barrier::wait(shared.keysFull(stage.index), stage.phase);
        note = Note::read(shared.note(stage.index));
    }
    __device__ __forceinline__ u32 queries(const Shared& shared) const { return shared.queries(pieces.queries.index); }
};

__device__ __forceinline__ Rows rowsOf(const Params& p, const Shared& shared, const Pieces& pieces, int group) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    return {pieces.rows(p, shared, group * 64 + thread / 32 * 16 + thread % 32 / 4),
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
__device__ void consume(const Params& p, const Shared& shared, int group) {
    const float factor = VT_SCORE != 0 ? kLog2e : p.scale * kLog2e;
    const u32 mine = static_cast<u32>(group * 64 * 128);
    Cursor at{Pieces(p)};
    if (group == 1) {
        passTurn(group); // the first turn is the first warpgroup's
    }
    if (at.pieces.begin(p, shared)) {
        Rows rows = rowsOf(p, shared, at.pieces, group);
        Sums sums;
        Scores scores;
        Weights weights;
        float shrink[2];
        int accumulate = 0; ///< the first values of a piece replace the sums
        at.arrive(shared);
        awaitTurn(group);
        issueProducts<kRows, kKeys>(scores, at.queries(shared) + mine, shared.keys(at.stage.index));
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
                release(shared.queriesEmpty(at.pieces.queries.index));
                if (!at.pieces.next(p, shared)) {
                    finishValues(shared, before, sums, weights, accumulate);
                    wgmma::wait<0>();
                    release(shared.valuesEmpty(before.index));
                    storeResult(p, rows, sums);
                    break;
                }
            }
            at.arrive(shared);
            awaitTurn(group);
            issueProducts<kRows, kKeys>(scores, at.queries(shared) + mine, shared.keys(at.stage.index));
            finishValues(shared, before, sums, weights, accumulate);
            passTurn(group);
            Rows next = last ? rowsOf(p, shared, at.pieces, group) : rows;
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

extern "C" __global__ void __launch_bounds__(384, 1) flex_attention_hopper(const __grid_constant__ flex::Params p) {
    using namespace flex;
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared{sharedAddress(memory)};
    if (threadIdx.x == 0) {
        initRing(shared.queriesFull(0), 1, shared.queriesEmpty(0), kReleases, kQueryStages);
        initRing(shared.keysFull(0), 1, shared.keysEmpty(0), kReleases, kStages);
        initRing(shared.valuesFull(0), 1, shared.valuesEmpty(0), kReleases, kStages);
        barrier::fenceInit();
    }
    divide(
        [&] {
            if (threadIdx.x < kGroups * 128 + 32) {
                produce(p, shared);
            }
        },
        [&](int group) { consume(p, shared, group); });
}

} // namespace vt

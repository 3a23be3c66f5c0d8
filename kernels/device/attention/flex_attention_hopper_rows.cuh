// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What flex_attention_hopper.cuh does to the scores of a slice: the programs, and weights relative to a base of each
// row. The base is the maximum of the first slice that a row sees; weights of later ones may be larger than 1. Only
// where a thread's sum of weights gets large, a new maximum becomes the base, and the sums so far are scaled down. So
// slices need no maximum, and sums are rarely touched between products; the results are the same, as all of a row is
// divided by the sum of the same weights.

#ifdef VT_PAGES
#include "device/attention/flex_attention_hopper_pages.cuh"
#else
#include "device/attention/flex_attention_hopper_dense.cuh"
#endif

namespace vt {

namespace flex {

inline constexpr int kSlice = 64; ///< keys whose scores a warpgroup makes at a time
inline constexpr int kSlices = kKeys / kSlice;
using Scores = float[kSlice / 2];
using Sums = float[kDim / 2];
using Weights = Fragments<kSlice>;

/// A thread's two rows: what weights are relative to (base 2), and their sum.
struct Rows {
    static constexpr float kNothing =
        -3e38F; ///< the base of a row that has seen nothing: any score makes an endless weight
    static constexpr float kMostSum = 4096; ///< of a thread's weights of a tile, far from what f16 cannot hold

    RowPlace place;
    float base[2];
    float total[2];
};

/// Whether elements of a slice take part: test(key, half).
template <class Test> __device__ __forceinline__ void keep(Scores& scores, int keyBegin, Test test) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int i = 0; i < kSlice / 2; ++i) {
        const int key = keyBegin + i / 4 * 8 + 2 * t + i % 2;
        scores[i] = test(key, i / 2 % 2) ? scores[i] : minusInfinity();
    }
}

/// The score program over a slice of a tile, then the mask where the tile needs it.
__device__ __forceinline__ void applyPrograms(const Params& p, const Rows& rows, const Note& note, int slice,
                                              Scores& scores) {
    const int begin = note.begin + slice * kSlice;
    const RowPlace& at = rows.place;
    if constexpr (VT_SCORE != 0) {
        const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = half * 2; i < kSlice / 2; i += i % 2 == 0 ? 1 : 3) {
                scores[i] = scoreMod(scores[i] * p.scale, at.batch(), at.head(half), at.query(half),
                                     begin + i / 4 * 8 + 2 * t + i % 2, p.scoreCaptures);
            }
        }
    }
    if (VT_MASK != 0 && note.partial()) {
        if constexpr (VT_MASK >= 2) {
            int low[2];
            int high[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                intervalRows(at.batch(), at.head(half), at.query(half), p.maskCaptures, low[half], high[half]);
            }
            keep(scores, begin, [&](int key, int half) { return (key >= low[half]) & (key <= high[half]); });
        }
        if constexpr (VT_MASK == 1 || VT_MASK == 3) {
            keep(scores, begin, [&](int key, int half) {
                return maskMod(at.batch(), at.head(half), at.query(half), key, p.maskCaptures);
            });
        }
    }
    const int firstKey = at.firstKey(p);
    const int lastKey = note.nothing() ? -1 : at.lastKey(p);
    if (begin + kSlice - 1 > lastKey || begin < firstKey) {
        keep(scores, begin, [&](int key, int) { return (key >= firstKey) & (key <= lastKey); });
    }
}

/// Weights as operands, and their sum for each of the thread's rows.
__device__ __forceinline__ void weigh(const Rows& rows, const Scores& scores, float factor, Weights& weights,
                                      float (&sums)[2]) {
    float odd[2] = {0, 0};
    sums[0] = 0;
    sums[1] = 0;
#pragma unroll
    for (int k = 0; k < kSlice / 16; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int half = i % 2;
            const float first = exp2Fast(fmaf(scores[k * 8 + 2 * i], factor, -rows.base[half]));
            const float second = exp2Fast(fmaf(scores[k * 8 + 2 * i + 1], factor, -rows.base[half]));
            sums[half] += first;
            odd[half] += second;
            weights[k][i] = packPair<T>(first, second);
        }
    }
    sums[0] += odd[0];
    sums[1] += odd[1];
}

/// A new base where a row needs one; `shrink` is what older sums are to be multiplied by.
__device__ __forceinline__ void raise(Rows& rows, const Scores& scores, float factor, const bool (&needed)[2],
                                      float (&shrink)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float best = fmaxf(scores[half * 2], scores[half * 2 + 1]);
#pragma unroll
        for (int j = 1; j < kSlice / 8; ++j) {
            best = fmaxf(best, fmaxf(scores[j * 4 + half * 2], scores[j * 4 + half * 2 + 1]));
        }
        const float highest = fmaxf(rows.base[half], quadMax(best) * factor);
        const float next = needed[half] ? highest : rows.base[half];
        shrink[half] = exp2Fast(rows.base[half] - next);
        rows.base[half] = next;
        rows.total[half] *= shrink[half];
    }
}

/// Whether any lane of this lane's quad says so.
__device__ __forceinline__ bool anyOfQuad(bool mine) {
    return (__ballot_sync(kAllLanes, mine) >> (threadIdx.x % 32 / 4 * 4) & 15U) != 0;
}

/// Scores become weights. Where older sums have to shrink, shrinkSums(factors) does it. A row's base does not depend on
/// the rows beside it. `first`: of these rows; there is nothing older.
template <class Shrink>
__device__ __forceinline__ void weighSlice(Rows& rows, const Scores& scores, float factor, bool first, Weights& weights,
                                           Shrink shrinkSums) {
    bool needed[2] = {first, first};
    bool raised = first;
    float sums[2];
    for (;;) {
        if (raised) {
            float shrink[2];
            raise(rows, scores, factor, needed, shrink);
            if (!first) {
                shrinkSums(shrink);
            }
        }
        weigh(rows, scores, factor, weights, sums);
        if (raised || __all_sync(kAllLanes, fmaxf(sums[0], sums[1]) <= Rows::kMostSum)) {
            break;
        }
        raised = true;
        needed[0] = anyOfQuad(!(sums[0] <= Rows::kMostSum));
        needed[1] = anyOfQuad(!(sums[1] <= Rows::kMostSum));
    }
    rows.total[0] += sums[0];
    rows.total[1] += sums[1];
}

__device__ __forceinline__ void storeResult(const Params& p, const Rows& rows, const Sums& sums) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float sum = quadSum(rows.total[half]);
        if (!rows.place.inside(p, half)) {
            continue;
        }
        float sink = Rows::kNothing;
        if (p.sinks != nullptr) {
            sink = toFloat(static_cast<const StorageOf<VT_SINKS_DTYPE>*>(p.sinks)[rows.place.head(half)]) * kLog2e;
        }
        const float base = fmaxf(rows.base[half], sink);
        const float share = exp2Fast(rows.base[half] - base);
        const float total = sum * share + (sink > Rows::kNothing ? exp2Fast(sink - base) : 0.0F);
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

} // namespace flex

} // namespace vt

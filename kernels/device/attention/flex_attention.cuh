// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention forward, portable form. A block owns VT_WARPS * VT_ROW_TILES * 16 rows and walks the tiles of VT_TILE
// keys that the mask leaves, loading one ahead. VT_PAGES: of a ragged batch over a paged cache, else of dense tensors.
// Online softmax in base 2; a row that sees nothing gives 0 and LSE -inf; the sink is one more logit without a value.

#ifdef VT_PAGES
#include "device/attention/flex_attention_pages.cuh"
#else
#include "device/attention/flex_attention_dense.cuh"
#endif

namespace vt {

namespace flex {

inline constexpr int kWarps = VT_WARPS;
inline constexpr int kRowTiles = VT_ROW_TILES; ///< of a warp, 16 rows each
inline constexpr int kRows = kWarps * kRowTiles * 16;
inline constexpr int kKeys = VT_TILE;
inline constexpr int kStages = VT_STAGES;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kKeyTiles = kKeys / 8;
inline constexpr int kStageBytes = 2 * kKeys * kPitch;
inline constexpr bool kQueryInRegisters = kDim * kRowTiles <= 128;

using Scores = float[kRowTiles][kKeyTiles][4];

/// A warp's rows: running maximum (base 2), sum and weighted values.
struct Accumulator {
    float sums[kRowTiles][kDimTiles][4];
    float maximum[kRowTiles][2];
    float total[kRowTiles][2];
};

/// Scores become weights, what was summed so far shrinks to the new maximum. `factor` turns scores into base 2.
__device__ __forceinline__ void softmax(Accumulator& accumulator, Scores& scores, float factor) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float best = minusInfinity();
#pragma unroll
            for (int j = 0; j < kKeyTiles; ++j) {
                best = fmaxf(best, fmaxf(scores[r][j][half * 2], scores[r][j][half * 2 + 1]));
            }
            const float next = fmaxf(accumulator.maximum[r][half], quadMax(best) * factor);
            const float base = next == minusInfinity() ? 0.0F : next;
            const float shrink = exp2Fast(accumulator.maximum[r][half] - base);
            accumulator.maximum[r][half] = next;
            float sum = accumulator.total[r][half] * shrink;
#pragma unroll
            for (int j = 0; j < kKeyTiles; ++j) {
#pragma unroll
                for (int i = half * 2; i < half * 2 + 2; ++i) {
                    scores[r][j][i] = exp2Fast(fmaf(scores[r][j][i], factor, -base));
                    sum += scores[r][j][i];
                }
            }
            accumulator.total[r][half] = sum;
#pragma unroll
            for (int d = 0; d < kDimTiles; ++d) {
                accumulator.sums[r][d][half * 2] *= shrink;
                accumulator.sums[r][d][half * 2 + 1] *= shrink;
            }
        }
    }
}

/// The score program over a tile, then the mask where the tile needs it.
__device__ __forceinline__ void applyPrograms(const Params& p, const Work& work, int warpRow, int keyBegin,
                                              bool partial, const int2* ranges, Scores& scores) {
    const int t = static_cast<int>(threadIdx.x) % 4;
    const int firstRow = warpRow + static_cast<int>(threadIdx.x) % 32 / 4;
    if constexpr (VT_SCORE != 0) {
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
            const RowPlace at(work, firstRow + r * 16);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < kKeyTiles; ++j) {
                    scores[r][j][i] = scoreMod(scores[r][j][i] * p.scale, at.batch(), at.head(i / 2), at.query(i / 2),
                                               keyBegin + j * 8 + 2 * t + i % 2, p.scoreCaptures);
                }
            }
        }
    }
    const int lastKey = RowPlace(work, firstRow).lastKey(p);
    if (VT_MASK == 1 ? !partial && keyBegin + kKeys - 1 <= lastKey : !partial) {
        return;
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
        const RowPlace at(work, firstRow + r * 16);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            int2 range{0, lastKey};
            if constexpr (VT_MASK != 1) {
                range = ranges[firstRow + r * 16 + half * 8];
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < kKeyTiles; ++j) {
                    const int key = keyBegin + j * 8 + 2 * t + i;
                    bool allowed = key >= range.x && key <= range.y;
                    if constexpr (VT_MASK == 1 || VT_MASK == 3) {
                        allowed = allowed &&
                                  (!partial || maskMod(at.batch(), at.head(half), at.query(half), key, p.maskCaptures));
                    }
                    scores[r][j][half * 2 + i] = allowed ? scores[r][j][half * 2 + i] : minusInfinity();
                }
            }
        }
    }
}

__device__ __forceinline__ void storeResult(const Params& p, const Work& work, int warpRow,
                                            const Accumulator& accumulator) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
        const RowPlace at(work, warpRow + static_cast<int>(threadIdx.x) % 32 / 4 + r * 16);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = quadSum(accumulator.total[r][half]);
            if (!at.inside(p, half)) {
                continue;
            }
            float sink = minusInfinity();
            if (p.sinks != nullptr) {
                sink = toFloat(static_cast<const StorageOf<VT_SINKS_DTYPE>*>(p.sinks)[at.head(half)]) * kLog2e;
            }
            const float best = fmaxf(accumulator.maximum[r][half], sink);
            const float base = best == minusInfinity() ? 0.0F : best;
            const float share = exp2Fast(accumulator.maximum[r][half] - base);
            const float total = sum * share + exp2Fast(sink - base);
            const float inverse = total == 0 ? 0.0F : share / total;
            auto* out = at.out(p, half) + 2 * t;
#pragma unroll
            for (int d = 0; d < kDimTiles; ++d) {
                storePair(out + d * 8, accumulator.sums[r][d][half * 2] * inverse,
                          accumulator.sums[r][d][half * 2 + 1] * inverse);
            }
            if (p.lse != nullptr && t == 0) {
                p.lse[at.lseAt(p, half)] = total == 0 ? minusInfinity() : (base + log2f(total)) * kLn2;
            }
        }
    }
}

#if VT_MASK != 1
/// What each row of the tile sees, and the walk over all of it.
__device__ __forceinline__ IntervalWalk<kKeys> walkIntervals(const Params& p, const Work& work, int2* ranges) {
    __shared__ int bounds[4]; // lowest and highest key of any row, of all rows
    const int firstKey = RowPlace(work, 0).firstKey(p);
    const int lastKey = RowPlace(work, 0).lastKey(p);
    if (threadIdx.x == 0) {
        bounds[0] = lastKey + 1;
        bounds[1] = firstKey - 1;
        bounds[2] = firstKey;
        bounds[3] = lastKey;
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.x); row < kRows; row += kThreads) {
        const RowPlace at(work, row);
        if (at.inside(p, 0)) {
            int low = firstKey;
            int high = lastKey;
#if VT_MASK >= 2
            intervalRows(at.batch(), at.head(0), at.query(0), p.maskCaptures, low, high);
            low = max(low, firstKey);
            high = min(high, lastKey);
#endif
            ranges[row] = {low, high};
            if (low <= high) {
                atomicMin(bounds, low);
                atomicMax(bounds + 1, high);
            }
            atomicMax(bounds + 2, low);
            atomicMin(bounds + 3, high);
        } else {
            ranges[row] = {0, -1};
        }
    }
    __syncthreads();
    return {bounds[0], bounds[1], bounds[2], bounds[3]};
}
#endif

/// What a row holds before its first key.
__device__ __forceinline__ void begin(Accumulator& accumulator) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            accumulator.maximum[r][half] = minusInfinity();
            accumulator.total[r][half] = 0;
        }
    }
    clear(accumulator.sums);
}

__device__ __forceinline__ void copyFragments(const u32 (&from)[kRowTiles][4], u32 (&to)[kRowTiles][4]) {
#pragma unroll
    for (int i = 0; i < kRowTiles * 4; ++i) {
        to[i / 4][i % 4] = from[i / 4][i % 4];
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(flex::kThreads, VT_BLOCKS_OF_SM)
    flex_attention(const __grid_constant__ flex::Params p) {
    using namespace flex;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ int2 ranges[VT_MASK == 1 ? 1 : kRows];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    pdl::wait();
    pdl::launchDependents();
    const auto& scene = sceneOf<kRows, kThreads>(p);
    if (!scene.exists()) {
        return;
    }
    const Work& work = scene.work;

    const u32 queries = sharedAddress(shared);
    const u32 ring = queries + kRows * kPitch;
    const auto otherStage = [&](u32 stage) {
        static_assert(kStages <= 2, "one tile is loaded ahead");
        return kStages == 1 ? ring : 2 * ring + kStageBytes - stage;
    };
    const auto load = [&](int keyBegin, u32 stage) { scene.template loadKeys<kKeys, kThreads>(p, keyBegin, stage); };
    scene.template loadQueries<kRows, kThreads>(p, queries);
    copyAsyncCommit();
#if VT_MASK == 1
    auto walk = walkRow<kKeys>(p, work.batch, work.head, work.begin);
#else
    auto walk = walkOf(p, work, walkIntervals(p, work, ranges));
#endif
    if (!walk.done()) {
        load(walk.begin(), ring);
    }
    copyAsyncCommit();

    const int warpRow = warp * kRowTiles * 16;
    const u32 queriesAt = queries + static_cast<u32>(warpRow * kPitch) + operandMatrixOffset(lane);
    u32 q[kQueryInRegisters ? kDimSteps : 1][kRowTiles][4];
    copyAsyncWait<1>();
    __syncthreads();
    if constexpr (kQueryInRegisters) {
#pragma unroll
        for (int k = 0; k < kDimSteps; ++k) {
            SharedFragments{queriesAt}(k, q[k]);
        }
    }
    Accumulator accumulator;
    begin(accumulator);
    u32 stage = ring;
    while (!walk.done()) {
        const int keyBegin = walk.begin();
        const bool partial = walk.partial();
        walk.next();
        copyAsyncWait<0>();
        __syncthreads(); // the tile is here, and all warps are done with the one before it
        if (kStages > 1 && !walk.done()) {
            load(walk.begin(), otherStage(stage));
            copyAsyncCommit();
        }
        Scores scores;
        multiplyRows(scores, stage, [&](int k, u32(&a)[kRowTiles][4]) {
            if constexpr (kQueryInRegisters) {
                copyFragments(q[k], a);
            } else {
                SharedFragments{queriesAt}(k, a);
            }
        });
        applyPrograms(p, work, warpRow, keyBegin, partial, ranges, scores);
        softmax(accumulator, scores, VT_SCORE != 0 ? kLog2e : p.scale * kLog2e);
        accumulateRows(accumulator.sums, scores, stage + kKeys * kPitch);
        if (kStages == 1 && !walk.done()) {
            __syncthreads();
            load(walk.begin(), otherStage(stage));
            copyAsyncCommit();
        }
        stage = otherStage(stage);
    }
    copyAsyncWait<0>();
    storeResult(p, work, warpRow, accumulator);
}

} // namespace vt

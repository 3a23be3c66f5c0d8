// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Partial results of a row's attention, by warps and by splits, and how they are merged; see attention_decode.cuh.
//
// Weights are relative to a base of each warp and head that only rises when they get large, so that most tiles need no
// maximum and leave the sums alone; the results are the same, as a base is part of what warps and splits are merged by.
// partials: for each row index and split, heads * headDim floats (weighted sums of values), and after all of these, for
// each row index and split, heads * 2 floats (maximum and sum, base 2).

#include "device/attention/attention_seen.cuh"
#include "device/attention/attention_stage.cuh"

namespace vt {

namespace decode {

inline constexpr int kWarps = 4;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kTileKeys = 16 * kWarps;
inline constexpr int kRows = kGroup < 16 ? kGroup : 16; ///< heads of a block
inline constexpr int kHeadTiles = ceilDiv(kGroup, 16);  ///< blocks that share a key head
inline constexpr int kStages = VT_DECODE_STAGES;
inline constexpr int kBlocksOfSm = kDim <= 64 ? (kBytes ? 4 : 3) : kDim <= 128 ? 2 : 1;
inline constexpr int kTableInShared = 512;    ///< entries of a block table
inline constexpr bool kListed = VT_MASK == 3; ///< tiles are those that attention_tiles.cuh found to be seen
static_assert(kTileKeys == seen::kKeys, "both speak of the same tiles");
// The next five as AttentionSplits of kernels/ops/attention/attention_splits.h.
inline constexpr int kWholeTiles = 6;   ///< contexts up to this many tiles are not split
inline constexpr int kTilesOfSplit = 4; ///< at least
inline constexpr int kTilesOfLongSplit = 16;
inline constexpr int kFewSplits = VT_FEW_SPLITS;
inline constexpr int kMaxSplits = 64;
inline constexpr int kCounters = 1 << 14;

/// Blocks of a row that have finished; the last one sets it back to 0.
__device__ unsigned counters[kCounters];

struct Shared {
    int table[kTableInShared];
    float sinks[16];          ///< base 2, of the block's heads
    float maxima[kWarps][16]; ///< of the warps: their bases, or -inf where one has seen nothing
    float totals[kWarps][16];
    bool isLast;
    /// Listed tiles under way: twice the number, 1 more where none of its keys is asked.
    int taken[kListed ? kWarps : 1][kListed ? kStages : 1];
};

/// Maximum and sum of every split, where the stages were.
struct SplitStatistics {
    float maxima[kMaxSplits][16];
    float totals[kMaxSplits][16];
};
static_assert(sizeof(SplitStatistics) <= kWarps * kStages * kStageBytes, "the stages are too small");

/// How a row's tiles are cut; depends on its own keys and on what never changes.
struct Cut {
    int splits, tilesOfSplit;
};
__device__ __forceinline__ Cut cutTiles(const AttentionParams& p, int tiles) {
    if (tiles <= kWholeTiles || p.splits == 1) {
        return {1, tiles};
    }
    const int some = min(ceilDiv(tiles, kTilesOfSplit), min(kFewSplits, p.splits));
    const int each = ceilDiv(tiles, max(some, min(tiles / kTilesOfLongSplit, p.splits)));
    return {ceilDiv(tiles, each), each};
}

/// The heads of a block and where their results go.
struct Heads {
    int row, begin, count;
};

__device__ __forceinline__ void writeResult(const AttentionParams& p, const Heads& heads, int item,
                                            const float (&sums)[4], float maximum, float total) {
    const int head = heads.begin + item * 4 / kDim;
    const float inverse = total == 0 ? 0.0F : 1.0F / total;
    Out* out = static_cast<Out*>(p.out) + heads.row * p.outStride + static_cast<i64>(heads.begin) * kDim + item * 4;
    storePair(out, sums[0] * inverse, sums[1] * inverse);
    storePair(out + 2, sums[2] * inverse, sums[3] * inverse);
    if (p.lse != nullptr && item * 4 % kDim == 0) {
        p.lse[static_cast<i64>(head) * p.tokens + heads.row] = naturalLse(maximum, total);
    }
}

/// Merges the splits of a row in their order and writes the result. `first*` are those of split 0.
__device__ __forceinline__ void mergeSplits(const AttentionParams& p, const Heads& heads, const Shared& shared,
                                            SplitStatistics& statistics, int splits, const float* firstSums,
                                            const float* firstStatistics) {
    const i64 sumStep = static_cast<i64>(p.heads) * kDim;
    for (int i = static_cast<int>(threadIdx.x); i < splits * 16; i += kThreads) {
        const int r = i % 16;
        const float* at = firstStatistics + (static_cast<i64>(i / 16) * p.heads + r) * 2;
        statistics.maxima[i / 16][r] = r < heads.count ? __ldcg(at) : 0.0F;
        statistics.totals[i / 16][r] = r < heads.count ? __ldcg(at + 1) : 0.0F;
    }
    __syncthreads();
    for (int item = static_cast<int>(threadIdx.x); item < heads.count * kDim / 4; item += kThreads) {
        const int r = item * 4 / kDim;
        float maximum = shared.sinks[r];
        for (int s = 0; s < splits; ++s) {
            maximum = fmaxf(maximum, statistics.maxima[s][r]);
        }
        const float base = safeMaximum(maximum);
        float total = exp2Fast(shared.sinks[r] - base);
        float sums[4] = {};
#pragma unroll 8
        for (int s = 0; s < splits; ++s) {
            const float4 part = __ldcg(reinterpret_cast<const float4*>(firstSums + s * sumStep + item * 4));
            const float share = exp2Fast(statistics.maxima[s][r] - base);
            total += share * statistics.totals[s][r];
            sums[0] += share * part.x;
            sums[1] += share * part.y;
            sums[2] += share * part.z;
            sums[3] += share * part.w;
        }
        writeResult(p, heads, item, sums, maximum, total);
    }
}

/// What a warp's weights of a lane's heads are relative to (base 2), and the sums of the lane's own.
struct Softmax {
    static constexpr float kNothing =
        -3.402823466e38F;                   ///< the base where nothing was seen: any score makes an endless weight
    static constexpr float kMostSum = 4096; ///< of a lane's weights of 16 keys, far from what f16 cannot hold

    float base[kHeadSets][2], total[kHeadSets][2];

    __device__ __forceinline__ Softmax() {
#pragma unroll
        for (int i = 0; i < kHeadSets * 2; ++i) {
            base[i / 2][i % 2] = kNothing;
            total[i / 2][i % 2] = 0;
        }
    }
    /// Scores become weights; where the bases have to rise, `sums` shrink. The warp's heads rise together.
    __device__ __forceinline__ void weigh(Scores& scores, Sums& sums) {
        Scores weights;
        if (!__all_sync(kAllLanes, relate(scores, weights) <= kMostSum)) { // not of a NaN either
            raise(scores, sums);
            relate(scores, weights);
        }
#pragma unroll
        for (int i = 0; i < kHeadSets * 4; ++i) {
            scores[i / 4][i % 4] = weights[i / 4][i % 4];
            total[i / 4][i % 2] += weights[i / 4][i % 4];
        }
    }

private:
    /// The sum of all weights.
    __device__ __forceinline__ float relate(const Scores& scores, Scores& weights) const {
#pragma unroll
        for (int i = 0; i < kHeadSets * 4; ++i) {
            weights[i / 4][i % 4] = exp2Fast(scores[i / 4][i % 4] - base[i / 4][i % 2]);
        }
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kHeadSets * 4; ++i) {
            sum += weights[i / 4][i % 4]; // NaN stays one
        }
        return sum;
    }
    __device__ __forceinline__ void raise(const Scores& scores, Sums& sums) {
        float shrink[kHeadSets][2];
#pragma unroll
        for (int i = 0; i < kHeadSets * 2; ++i) {
            float& old = base[i / 2][i % 2];
            const float next = fmaxf(old, columnMax(fmaxf(scores[i / 2][i % 2], scores[i / 2][i % 2 + 2])));
            shrink[i / 2][i % 2] = exp2Fast(old - next);
            total[i / 2][i % 2] *= shrink[i / 2][i % 2];
            old = next;
        }
        shrinkSums(sums, shrink);
    }
};

/// Merges the warps of a block, in their order, in the stages' memory: the result where the row is not cut, else
/// partials.
__device__ __forceinline__ void writePart(const AttentionParams& p, const Heads& heads, Shared& shared,
                                          unsigned char* stages, const Softmax& softmax, const Sums& sums, bool whole,
                                          float* partialSums, float* partialStatistics) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int g = lane / 4;
    const int t = lane % 4;
    float* merged = reinterpret_cast<float*>(stages); // (warps, kRows, kDim)
#pragma unroll
    for (int i = 0; i < kHeadSets * 2; ++i) {
        const int r = i / 2 * 8 + 2 * t + i % 2;
        const float sum = columnSum(softmax.total[i / 2][i % 2]);
        if (g == 0) {
            const float base = softmax.base[i / 2][i % 2];
            shared.maxima[warp][r] = base == Softmax::kNothing ? minusInfinity() : base;
            shared.totals[warp][r] = sum;
        }
        if (r < kRows) {
#pragma unroll
            for (int d = 0; d < kDimTiles; ++d) {
                storeSums(merged + (warp * kRows + r) * kDim, d, sums[i / 2][d][i % 2], sums[i / 2][d][i % 2 + 2]);
            }
        }
    }
    __syncthreads();
    for (int item = static_cast<int>(threadIdx.x); item < heads.count * kDim / 4; item += kThreads) {
        const int r = item * 4 / kDim;
        float best = whole ? shared.sinks[r] : minusInfinity();
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            best = fmaxf(best, shared.maxima[w][r]);
        }
        const float base = safeMaximum(best);
        float sum[4] = {};
        float all = whole ? exp2Fast(shared.sinks[r] - base) : 0.0F;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            const float share = exp2Fast(shared.maxima[w][r] - base);
            all += share * shared.totals[w][r];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sum[i] += share * merged[w * kRows * kDim + item * 4 + i];
            }
        }
        if (whole) {
            writeResult(p, heads, item, sum, best, all);
        } else {
            *reinterpret_cast<float4*>(partialSums + item * 4) = make_float4(sum[0], sum[1], sum[2], sum[3]);
            if (item * 4 % kDim == 0) {
                partialStatistics[r * 2] = best;
                partialStatistics[r * 2 + 1] = all;
            }
        }
    }
}

/// Counts a finished split; the last of the row's blocks merges them all.
__device__ __forceinline__ void countPart(const AttentionParams& p, const Heads& heads, Shared& shared,
                                          unsigned char* stages, int splits, const float* firstSums,
                                          const float* firstStatistics) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* counter = counters + (static_cast<i64>(blockIdx.z) * gridDim.y + blockIdx.y);
        const unsigned last = static_cast<unsigned>(splits - 1);
        shared.isLast = atomicInc(counter, last) == last;
        __threadfence();
    }
    __syncthreads();
    if (shared.isLast) {
        mergeSplits(p, heads, shared, *reinterpret_cast<SplitStatistics*>(stages), splits, firstSums, firstStatistics);
    }
}

} // namespace decode

} // namespace vt

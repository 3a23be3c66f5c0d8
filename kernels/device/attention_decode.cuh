// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One row of q at a time: see attention_mma.cuh.
//
// Starts before the kernel before it has ended: the step's inputs (offsets, positions, tables, what the mask captures) and keys
// of earlier steps are read at once, because no kernel of this step writes them; q and what this step adds only after the wait.
// Weights are relative to a base of each warp and head that only rises when they get large, so that most tiles need no maximum
// and leave the sums alone; the results are the same, as a base is part of what warps and splits are merged by.
// partials: for each row index and split, heads * headDim floats (weighted sums of values), and behind all of these, for
// each row index and split, heads * 2 floats (maximum and sum, base 2).

#include "device/attention_seen.cuh"
#include "device/attention_stage.cuh"

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
// The next three as AttentionSplits of kernels/ops/attention_splits.h.
inline constexpr int kWholeTiles = 6;   ///< contexts up to this many tiles are not split
inline constexpr int kTilesOfSplit = 4; ///< at least
inline constexpr int kMaxSplits = 64;
inline constexpr int kCounters = 1 << 14;

/// Blocks of a row that have finished; whoever finishes last sets it back to 0.
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

/// What the step's inputs say of the block's row. row -1: it is not ours.
struct Row {
    int row, rowBegin, rowEnd;
    int sequence;
    int position, firstPosition; ///< of the row, and of its sequence's first row
    const int* table;
    int first, length;
};

__device__ __forceinline__ const int* copyTable(const AttentionParams& p, int sequence, Shared& shared) {
    const int* table = p.cache.blockTable + static_cast<i64>(sequence) * p.cache.columns;
    if (p.cache.columns > kTableInShared) {
        return table;
    }
    for (int i = static_cast<int>(threadIdx.x); i < p.cache.columns; i += kThreads) {
        shared.table[i] = table[i];
    }
    return shared.table;
}

/// Most of the time row i is sequence i's only one: all loads for that case are under way at once.
__device__ __forceinline__ Row rowOf(const AttentionParams& p, int index, Shared& shared) {
    const int last = p.cache.sequences - 1;
    int sequence = index < last ? index : last;
    Row out{index, p.offsets[sequence], p.offsets[sequence + 1], sequence, 0, 0, nullptr, 0, 0};
    out.first = p.cache.first[sequence];
    out.length = p.cache.lengths[sequence];
    out.position = p.positions[p.byRow != 0 ? index : 0];
    out.table = copyTable(p, sequence, shared);
    if (p.byRow == 0) {
        out.row = out.rowEnd - out.rowBegin == 1 ? out.rowBegin : -1;
        out.position = out.row < 0 ? 0 : p.positions[out.row];
    } else if (index < out.rowBegin || index >= out.rowEnd) {
        int low = 0;
        int high = last;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (p.offsets[middle + 1] > index) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        sequence = low;
        out.sequence = low;
        out.rowBegin = p.offsets[sequence];
        out.rowEnd = p.offsets[sequence + 1];
        out.first = p.cache.first[sequence];
        out.length = p.cache.lengths[sequence];
        out.table = copyTable(p, sequence, shared);
    }
    out.firstPosition = out.row == out.rowBegin || out.row < 0 ? out.position : p.positions[out.rowBegin];
    return out;
}

/// How a row's tiles are cut; depends on its own keys and on what never changes.
struct Cut {
    int splits, tilesOfSplit;
};
__device__ __forceinline__ Cut cutTiles(const AttentionParams& p, int tiles) {
    if (tiles <= kWholeTiles || p.splits == 1) {
        return {1, tiles};
    }
    const int wanted = ceilDiv(tiles, kTilesOfSplit);
    const int each = ceilDiv(tiles, wanted < p.splits ? wanted : p.splits);
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
        p.lse[static_cast<i64>(heads.row) * p.heads + head] = naturalLse(maximum, total);
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

/// What the block's heads see, one with another.
__device__ __forceinline__ KeyRange rangeOf(const AttentionCall& p, const SequenceKeys& keys, const Row& row,
                                            const Heads& heads) {
    KeyRange out = visibleKeys(p, row.sequence, heads.begin, keys.first(), keys.last(), row.position);
    if constexpr (VT_PER_HEAD != 0) {
        for (int head = heads.begin + 1; head < heads.begin + heads.count; ++head) {
            const KeyRange other = visibleKeys(p, row.sequence, head, keys.first(), keys.last(), row.position);
            if (other.lo <= other.hi) {
                out = out.lo > out.hi ? other : KeyRange{min(out.lo, other.lo), max(out.hi, other.hi)};
            }
        }
    }
    return out;
}

/// Products of the 16 keys from `begin` on as scores in base 2; -inf where allowed(place) is false.
template <class Allowed>
__device__ __forceinline__ void scoreKeys(const AttentionCall& p, const Row& row, const Heads& heads, int begin,
                                          bool asked, Scores& scores, const Allowed& allowed) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kHeadSets * 4; ++i) {
        float& score = scores[i / 4][i % 4];
        const ScorePlace at{row.sequence, heads.begin + i / 4 * 8 + lane % 4 * 2 + i % 2, row.position,
                            begin + lane / 4 + i % 4 / 2 * 8};
        score = allowed(at) ? score2(p, at, score, asked) : minusInfinity();
    }
}
/// The same with the keys that each head sees.
__device__ __forceinline__ void scoreSeen(const AttentionCall& p, const Row& row, const Heads& heads,
                                          const SequenceKeys& keys, const KeyRange& range, int begin, bool asked,
                                          Scores& scores) {
    if constexpr (VT_PER_HEAD != 0) {
        scoreKeys(p, row, heads, begin, asked, scores, [&](const ScorePlace& at) {
            const KeyRange seen = visibleKeys(p, row.sequence, at.head, keys.first(), keys.last(), row.position);
            return at.key >= seen.lo && at.key <= seen.hi;
        });
    } else if (begin >= range.lo && begin + 15 <= range.hi) {
        scoreKeys(p, row, heads, begin, asked, scores, [](const ScorePlace&) { return true; });
    } else {
        scoreKeys(p, row, heads, begin, asked, scores,
                  [&](const ScorePlace& at) { return at.key >= range.lo && at.key <= range.hi; });
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

} // namespace decode

extern "C" __global__ void __launch_bounds__(128, decode::kBlocksOfSm)
    attention_decode(const __grid_constant__ AttentionCall p) {
    using namespace decode;
    extern __shared__ __align__(16) unsigned char stages[];
    __shared__ Shared shared;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int split = static_cast<int>(blockIdx.x);
    const int kvHead = static_cast<int>(blockIdx.y) / kHeadTiles;
    const int headInGroup = static_cast<int>(blockIdx.y) % kHeadTiles * 16;
    const int index = static_cast<int>(blockIdx.z);
    pdl::launchDependents();
    const Row row = rowOf(p, index, shared);
    const int rows = kGroup - headInGroup < 16 ? kGroup - headInGroup : 16;
    const Heads heads{row.row, kvHead * kGroup + headInGroup, rows};
    if (threadIdx.x < static_cast<unsigned>(rows)) {
        shared.sinks[threadIdx.x] = sink2(p, heads.begin + static_cast<int>(threadIdx.x));
    }
    __syncthreads();
    const SequenceKeys keys(p, KvSequence(p.cache, row.table, row.first, row.length), row.rowBegin, row.rowEnd,
                            row.firstPosition);
    const KeyRange range = rangeOf(p, keys, row, heads);
    seen::RowTiles list(p, row.row < 0 ? 0 : row.row, heads.begin, rows, keys.first(), range.lo, range.hi);
    int firstTile = range.lo / kTileKeys;
    int tiles = range.lo > range.hi ? 0 : range.hi / kTileKeys - firstTile + 1;
    if constexpr (kListed) {
        pdl::wait(); // for what the kernel before this one lists
        firstTile = 0;
        tiles = row.row < 0 ? 0 : list.count();
    }
    const Cut cut = cutTiles(p, tiles);
    if (row.row < 0 || split >= cut.splits) {
        pdl::wait();
        return;
    }
    const int tileBegin = firstTile + split * cut.tilesOfSplit;
    const int tileEnd =
        tileBegin + cut.tilesOfSplit < firstTile + tiles ? tileBegin + cut.tilesOfSplit : firstTile + tiles;
    if constexpr (kListed) {
        list.seek(tileBegin);
    }

    // The warp's own ring of stages.
    const u32 ring = sharedAddress(stages) + static_cast<u32>(warp * kStages * kStageBytes);
    const auto issue = [&](int tileNumber) {
        if (tileNumber < tileEnd) {
            const u32 stage = ring + static_cast<u32>((tileNumber - tileBegin) % kStages * kStageBytes);
            int place = tileNumber;
            if constexpr (kListed) {
                const seen::Tile tile = list.take();
                place = tile.number;
                if (lane == 0) {
                    shared.taken[warp][(tileNumber - tileBegin) % kStages] = place * 2 + (tile.whole ? 1 : 0);
                }
            }
            const int begin = place * kTileKeys + warp * 16;
            const bool all = begin >= range.lo && begin + 15 <= range.hi;
            const SequenceKeys::Place run = all ? keys.locateRun(begin) : SequenceKeys::nowhere();
            if (SequenceKeys::isInPage(run)) {
                bringRun(p, run, kvHead, stage);
            } else {
                const int position = begin + lane % 16;
                const bool wanted = position >= range.lo && position <= range.hi;
                bringRows(p, wanted ? keys.locate(position) : SequenceKeys::nowhere(), kvHead, stage);
            }
        }
        copyAsyncCommit();
    };
    const auto isOld = [&](int tileNumber) { return tileNumber * kTileKeys + warp * 16 + 15 < row.firstPosition; };
    int issued = 0;
    while (issued < kStages && !kListed && isOld(tileBegin + issued)) {
        issue(tileBegin + issued);
        ++issued;
    }
    pdl::wait();
    while (issued < kStages) {
        issue(tileBegin + issued);
        ++issued;
    }

    const int g = lane / 4;
    const int t = lane % 4;
    Queries q;
    const T* queries = static_cast<const T*>(p.q) + row.row * p.qStride + static_cast<i64>(heads.begin) * kDim;
    const u32 queryAt = sharedAddress(stages) + kWarps * kStages * kStageBytes;
    if constexpr (kQueryInShared) {
        for (int piece = static_cast<int>(threadIdx.x); piece < 16 * kPieces; piece += 32 * kWarps) {
            const int r = piece / kPieces;
            u32x4 value{0, 0, 0, 0};
            if (r < rows) {
                value = *reinterpret_cast<const u32x4*>(queries + r * kDim + piece % kPieces * 8);
            }
            storeQuery(stages + kWarps * kStages * kStageBytes + r * kPitch, piece % kPieces, value);
        }
        __syncthreads();
    } else {
        loadQueries(q, queries, rows);
    }
    Softmax softmax;
    Sums sums = {};
    for (int tileNumber = tileBegin; tileNumber < tileEnd; ++tileNumber) {
        copyAsyncWait<kStages - 1>();
        __syncwarp();
        const u32 stage = ring + static_cast<u32>((tileNumber - tileBegin) % kStages * kStageBytes);
        Scores scores;
        multiplyKeys(scores, q, queryAt, stage);
        int place = tileNumber;
        bool asked = true;
        if constexpr (kListed) {
            const int taken = shared.taken[warp][(tileNumber - tileBegin) % kStages];
            place = taken / 2;
            asked = taken % 2 == 0;
        }
        scoreSeen(p, row, heads, keys, range, place * kTileKeys + warp * 16, asked, scores);
        softmax.weigh(scores, sums);
        addValues(sums, scores, stage);
        __syncwarp();
        issue(tileNumber + kStages);
    }
    copyAsyncWait<0>();
    __syncthreads();

    // Merge the warps, in their order; the stages' memory holds their sums.
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
    const bool whole = cut.splits == 1;
    const i64 entry = static_cast<i64>(index) * p.splits + split;
    float* const partialSums = p.partials + (entry * p.heads + heads.begin) * kDim;
    float* const partialStatistics =
        p.partials + (static_cast<i64>(gridDim.z) * p.splits * kDim + entry * 2) * p.heads + heads.begin * 2;
    for (int item = static_cast<int>(threadIdx.x); item < rows * kDim / 4; item += kThreads) {
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
    if (whole) {
        return;
    }

    // The last of the row's blocks merges the splits.
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* counter = counters + (static_cast<i64>(index) * gridDim.y + blockIdx.y);
        const unsigned last = static_cast<unsigned>(cut.splits - 1);
        shared.isLast = atomicInc(counter, last) == last;
        __threadfence();
    }
    __syncthreads();
    if (shared.isLast) {
        mergeSplits(p, heads, shared, *reinterpret_cast<SplitStatistics*>(stages), cut.splits,
                    partialSums - static_cast<i64>(split) * p.heads * kDim,
                    partialStatistics - static_cast<i64>(split) * p.heads * 2);
    }
}

} // namespace vt

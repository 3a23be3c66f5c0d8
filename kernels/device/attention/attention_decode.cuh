// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One row of q at a time: see attention_mma.cuh.
//
// The kernel starts before the kernel in front has ended. It reads the inputs of the step (offsets, positions, tables,
// what the mask captures) and keys of earlier steps at once, because no kernel of this step writes them. It reads q and
// the keys that this step adds only after the wait. A thread block takes every gridDim.x-th split of a row. How a row
// is cut depends on its length alone. How many blocks share the work depends on the number of rows.

#include "device/attention/attention_decode_parts.cuh"

namespace vt {

namespace decode {

/// What the step's inputs say about the block's row. row -1: the row is not for this kernel.
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

/// What one block does: one row, some of its heads, and the splits of its keys.
struct Task {
    const AttentionCall& p;
    Shared& shared;
    unsigned char* stages;
    const Row& row;
    const Heads& heads;
    const SequenceKeys& keys;
    const KeyRange& range;
    const Cut& cut;
    int kvHead, index;
    int firstTile, endTile;
};

/// Brings the warp's 16 keys and values of the tile at `place` into a stage of its ring.
__device__ __forceinline__ void bringTile(const Task& task, int place, u32 stage) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const KeyRange& range = task.range;
    const int begin = place * kTileKeys + warp * 16;
    const bool all = begin >= range.lo && begin + 15 <= range.hi;
    const SequenceKeys::Place run = all ? task.keys.locateRun(begin) : SequenceKeys::nowhere();
    if (SequenceKeys::isInPage(run)) {
        bringRun(task.p, run, task.kvHead, stage);
    } else {
        const int position = begin + lane % 16;
        const bool wanted = position >= range.lo && position <= range.hi;
        bringRows(task.p, wanted ? task.keys.locate(position) : SequenceKeys::nowhere(), task.kvHead, stage);
    }
}

/// Brings the row's queries into registers, or after the stages where they do not fit.
__device__ __forceinline__ void bringQueries(const Task& task, Queries& q) {
    const T* queries =
        static_cast<const T*>(task.p.q) + task.row.row * task.p.qStride + static_cast<i64>(task.heads.begin) * kDim;
    if constexpr (kQueryInShared) {
        for (int piece = static_cast<int>(threadIdx.x); piece < 16 * kPieces; piece += 32 * kWarps) {
            const int r = piece / kPieces;
            u32x4 value{0, 0, 0, 0};
            if (r < task.heads.count) {
                value = *reinterpret_cast<const u32x4*>(queries + r * kDim + piece % kPieces * 8);
            }
            storeQuery(task.stages + kWarps * kStages * kStageBytes + r * kPitch, piece % kPieces, value);
        }
        __syncthreads();
    } else {
        loadQueries(q, queries, task.heads.count);
    }
}

/// Writes what the warps found for a split; the last split of a row to end adds all of them up.
__device__ __forceinline__ void writeSplit(const Task& task, int split, Softmax& softmax, Sums& sums) {
    const AttentionCall& p = task.p;
    const bool whole = task.cut.splits == 1;
    float* const firstSums = p.partials + (static_cast<i64>(task.index) * p.splits * p.heads + task.heads.begin) * kDim;
    float* const firstStatistics = p.partials + static_cast<i64>(gridDim.z) * p.splits * p.heads * kDim +
                                   (static_cast<i64>(task.index) * p.splits * p.heads + task.heads.begin) * 2;
    const i64 before = static_cast<i64>(split) * p.heads;
    writePart(p, task.heads, task.shared, task.stages, softmax, sums, whole, firstSums + before * kDim,
              firstStatistics + before * 2);
    if (!whole) {
        countPart(p, task.heads, task.shared, task.stages, task.cut.splits, firstSums, firstStatistics);
    }
}

/// Scores, weights and sums over the tiles of one split.
__device__ __forceinline__ void attendSplit(const Task& task, seen::RowTiles& list, int split) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int tileBegin = task.firstTile + split * task.cut.tilesOfSplit;
    const int tileEnd = min(tileBegin + task.cut.tilesOfSplit, task.endTile);
    if constexpr (kListed) {
        list.seek(tileBegin);
    }

    // The warp's own ring of stages.
    const u32 ring = sharedAddress(task.stages) + static_cast<u32>(warp * kStages * kStageBytes);
    const auto issue = [&](int tileNumber) {
        if (tileNumber < tileEnd) {
            const u32 stage = ring + static_cast<u32>((tileNumber - tileBegin) % kStages * kStageBytes);
            int place = tileNumber;
            if constexpr (kListed) {
                const seen::Tile tile = list.take();
                place = tile.number;
                if (lane == 0) {
                    task.shared.taken[warp][(tileNumber - tileBegin) % kStages] = place * 2 + (tile.whole ? 1 : 0);
                }
            }
            bringTile(task, place, stage);
        }
        copyAsyncCommit();
    };
    const auto isOld = [&](int tileNumber) { return tileNumber * kTileKeys + warp * 16 + 15 < task.row.firstPosition; };
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

    Queries q;
    bringQueries(task, q);
    const u32 queryAt = sharedAddress(task.stages) + kWarps * kStages * kStageBytes;
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
            const int taken = task.shared.taken[warp][(tileNumber - tileBegin) % kStages];
            place = taken / 2;
            asked = taken % 2 == 0;
        }
        scoreSeen(task.p, task.row, task.heads, task.keys, task.range, place * kTileKeys + warp * 16, asked, scores);
        softmax.weigh(scores, sums);
        addValues(sums, scores, stage);
        __syncwarp();
        issue(tileNumber + kStages);
    }
    copyAsyncWait<0>();
    __syncthreads();
    writeSplit(task, split, softmax, sums);
}

} // namespace decode

extern "C" __global__ void __launch_bounds__(128, decode::kBlocksOfSm)
    attention_decode(const __grid_constant__ AttentionCall p) {
    using namespace decode;
    extern __shared__ __align__(16) unsigned char stages[];
    __shared__ Shared shared;
    const int firstSplit = static_cast<int>(blockIdx.x);
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
    if (row.row < 0 || firstSplit >= cut.splits) {
        pdl::wait();
        return;
    }
    const Task task{p, shared, stages, row, heads, keys, range, cut, kvHead, index, firstTile, firstTile + tiles};
    for (int split = firstSplit; split < cut.splits; split += static_cast<int>(gridDim.x)) {
        attendSplit(task, list, split);
        __syncthreads(); // the stages are free
    }
}

} // namespace vt

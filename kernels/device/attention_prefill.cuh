// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sequences with more than one row of q: see attention_mma.cuh. A tile holds VT_PREFILL_WARPS * 16 * VT_PREFILL_ROW_TILES
// (row, head) pairs of one sequence and key head; keys come VT_PREFILL_KEYS at a time through VT_PREFILL_STAGES stages.

#include "device/attention_mma.cuh"

namespace vt {

namespace prefill {

using namespace tile;

inline constexpr int kWarps = VT_PREFILL_WARPS;
inline constexpr int kRowTiles = VT_PREFILL_ROW_TILES; ///< of a warp, 16 rows each
inline constexpr int kRows = kWarps * kRowTiles * 16;
inline constexpr int kKeys = VT_PREFILL_KEYS;
inline constexpr int kStages = VT_PREFILL_STAGES;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kKeyTiles = kKeys / 8;
inline constexpr int kStageBytes = 2 * kKeys * kPitch;
inline constexpr bool kQueryInRegisters = kDim * kRowTiles <= 128;
inline constexpr int kBlocksOfSm = kWarps <= 4 ? 2 : 1;
inline constexpr int kTableInShared = 512; ///< entries of a block table

/// A block's work: a tile of a sequence. sequence -1: none.
struct Work {
    int sequence, rowBegin, rowEnd, tile;
    int kvHead = 0;
};

/// The `index`-th tile over all sequences; within a sequence the last comes first, because it sees the most keys.
__device__ __forceinline__ Work workOf(const AttentionParams& p, int index) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int base = 0; base < p.cache.sequences; base += 32) {
        const int sequence = base + lane;
        int begin = 0;
        int end = 0;
        if (sequence < p.cache.sequences) {
            begin = p.offsets[sequence];
            end = p.offsets[sequence + 1];
        }
        const int tiles = end - begin > 1 ? ceilDiv((end - begin) * kGroup, kRows) : 0;
        int sum = tiles;
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
            const int other = __shfl_up_sync(kAllLanes, sum, offset);
            sum += lane >= offset ? other : 0;
        }
        const u32 behind = __ballot_sync(kAllLanes, sum > index);
        if (behind != 0) {
            const int found = __ffs(static_cast<int>(behind)) - 1;
            return {base + found, __shfl_sync(kAllLanes, begin, found), __shfl_sync(kAllLanes, end, found),
                    __shfl_sync(kAllLanes, sum, found) - 1 - index};
        }
        index -= __shfl_sync(kAllLanes, sum, 31);
    }
    return {-1, 0, 0, 0};
}

/// One (row, head) pair of the tile.
struct Pair {
    int row; ///< of q
    int head;
    bool inside;
};
__device__ __forceinline__ Pair pairOf(const Work& work, int inTile) {
    const int pair = work.tile * kRows + inTile;
    return {work.rowBegin + pair / kGroup, work.kvHead * kGroup + pair % kGroup,
            pair < (work.rowEnd - work.rowBegin) * kGroup};
}

/// What a block needs to know of its work. In shared memory, because registers are short.
struct Scene {
    __device__ __forceinline__ Scene(const AttentionParams& p, const Work& item, const int* table)
        : work(item), position(p.positions[item.rowBegin]),
          keys(p, KvSequence(p.cache, table, p.cache.first[item.sequence], p.cache.lengths[item.sequence]),
               item.rowBegin, item.rowEnd, position) {
        const int lastRow = (item.tile * kRows + kRows - 1) / kGroup;
        const int rows = item.rowEnd - item.rowBegin;
        first = visibleKeys(p, keys.first(), keys.last(), position + item.tile * kRows / kGroup);
        last = visibleKeys(p, keys.first(), keys.last(), position + (lastRow < rows ? lastRow : rows - 1));
    }

    Work work;
    int position; ///< of the sequence's first row
    SequenceKeys keys;
    KeyRange first, last; ///< what the tile's first and last row see
};

__device__ __forceinline__ void loadQueries(const AttentionParams& p, const Work& work, u32 to) {
    for (int piece = static_cast<int>(threadIdx.x); piece < kRows * kPieces; piece += kThreads) {
        const int r = piece / kPieces;
        const Pair pair = pairOf(work, r);
        const T* from = static_cast<const T*>(p.q);
        if (pair.inside) {
            from += pair.row * p.qStride + static_cast<i64>(pair.head) * kDim + piece % kPieces * 8;
        }
        copyAsync16(to + static_cast<u32>(r * kPitch + piece % kPieces * 16), from, pair.inside);
    }
}

inline constexpr int kShare = kKeys / kWarps; ///< rows of a tile of keys that a warp brings

/// Keys and values from position `begin` on: a warp brings its share of the rows. Positions without a key give zeros.
__device__ __forceinline__ void loadKeys(const AttentionParams& p, const Scene& scene, int begin, u32 to) {
    static_assert(2 * kShare <= 32, "a lane has one row");
    static_assert(2 * kShare * kPieces % 32 == 0, "lanes have equal shares");
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int rowBegin = static_cast<int>(threadIdx.x) / 32 * kShare;
    const SequenceKeys::Place place = scene.keys.locate(begin + rowBegin + lane % kShare);
    const T* mine = SequenceKeys::elements<T>(p, place, lane >= kShare);
    mine = mine == nullptr ? nullptr : mine + static_cast<i64>(scene.work.kvHead) * kDim;
#pragma unroll
    for (int i = 0; i < 2 * kShare * kPieces / 32; ++i) {
        const int piece = i * 32 + lane;
        const int from = piece / kPieces;
        const auto address = reinterpret_cast<const T*>(__shfl_sync(kAllLanes, reinterpret_cast<u64>(mine), from));
        const bool valid = address != nullptr;
        const int row = from < kShare ? rowBegin + from : kKeys + rowBegin + from - kShare;
        copyAsync16(to + static_cast<u32>(row * kPitch + piece % kPieces * 16),
                    valid ? address + piece % kPieces * 8 : static_cast<const T*>(p.q), valid);
    }
}

/// A warp's rows: running maximum, sum and weighted values.
struct Accumulator {
    float sums[kRowTiles][kDimTiles][4];
    float maximum[kRowTiles][2];
    float total[kRowTiles][2];
};

using Scores = float[kRowTiles][kKeyTiles][4];

__device__ __forceinline__ void multiplyKeys(Scores& scores, u32 keysAt, u32 queriesAt,
                                             u32 (&q)[kQueryInRegisters ? kDimSteps : 1][kRowTiles][4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int k = 0; k < kDimSteps; ++k) {
        u32(&a)[kRowTiles][4] = q[kQueryInRegisters ? k : 0];
        if constexpr (!kQueryInRegisters) {
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
                loadMatrix4(a[r], queriesAt + static_cast<u32>(r * 16 * kPitch + k * 32));
            }
        }
#pragma unroll
        for (int j = 0; j < kKeyTiles; j += 2) {
            u32 b[4];
            loadMatrix4(b, keysAt + keyMatrixOffset(lane) + static_cast<u32>(j * 8 * kPitch + k * 32));
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
                if (k == 0) {
                    mmaFirst<T>(scores[r][j], a[r], b[0], b[1]);
                    mmaFirst<T>(scores[r][j + 1], a[r], b[2], b[3]);
                } else {
                    mma16816<T>(scores[r][j], a[r], b[0], b[1]);
                    mma16816<T>(scores[r][j + 1], a[r], b[2], b[3]);
                }
            }
        }
    }
}

__device__ __forceinline__ void multiplyValues(Accumulator& accumulator, const Scores& weights, u32 valuesAt) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int j = 0; j < kKeyTiles; j += 2) {
        u32 a[kRowTiles][4];
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
            a[r][0] = packPair<T>(weights[r][j][0], weights[r][j][1]);
            a[r][1] = packPair<T>(weights[r][j][2], weights[r][j][3]);
            a[r][2] = packPair<T>(weights[r][j + 1][0], weights[r][j + 1][1]);
            a[r][3] = packPair<T>(weights[r][j + 1][2], weights[r][j + 1][3]);
        }
#pragma unroll
        for (int d = 0; d < kDimTiles; d += 2) {
            u32 b[4];
            loadMatrix4Transposed(b, valuesAt + valueMatrixOffset(lane) + static_cast<u32>(j * 8 * kPitch + d * 16));
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
                mma16816<T>(accumulator.sums[r][d], a[r], b[0], b[1]);
                mma16816<T>(accumulator.sums[r][d + 1], a[r], b[2], b[3]);
            }
        }
    }
}

/// Online softmax: scores become weights, what was summed so far shrinks to the new maximum. `factor` turns scores into
/// base 2.
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
            const float base = safeMaximum(next);
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

} // namespace prefill

extern "C" __global__ void __launch_bounds__(prefill::kThreads, prefill::kBlocksOfSm)
    attention_prefill(const __grid_constant__ AttentionParams p) {
    using namespace prefill;
    extern __shared__ __align__(16) unsigned char shared[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    pdl::wait();
    pdl::launchDependents();
    __shared__ __align__(16) unsigned char scenePlace[sizeof(Scene)];
    __shared__ int table[kTableInShared];
    const Scene& scene = *reinterpret_cast<const Scene*>(scenePlace);
    {
        Work work = workOf(p, static_cast<int>(blockIdx.x) / p.kvHeads);
        work.kvHead = static_cast<int>(blockIdx.x) % p.kvHeads;
        if (work.sequence < 0) {
            return;
        }
        const int* whole = p.cache.blockTable + static_cast<i64>(work.sequence) * p.cache.columns;
        const bool copied = p.cache.columns <= kTableInShared;
        for (int i = static_cast<int>(threadIdx.x); copied && i < p.cache.columns; i += kThreads) {
            table[i] = whole[i];
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            *reinterpret_cast<Scene*>(scenePlace) = Scene(p, work, copied ? table : whole);
        }
        __syncthreads();
    }
    const SequenceKeys& keys = scene.keys;
    const Work& work = scene.work;
    __shared__ KeyRange ranges[kRows]; // what each row of the tile sees
    if (threadIdx.x < kRows) {
        const int pair = work.tile * kRows + static_cast<int>(threadIdx.x);
        ranges[threadIdx.x] = visibleKeys(p, keys.first(), keys.last(), scene.position + pair / kGroup);
    }
    const int begin = scene.first.lo / kKeys;
    const int end = scene.last.hi < scene.first.lo ? begin : scene.last.hi / kKeys + 1;

    const u32 queries = sharedAddress(shared);
    const u32 ring = queries + kRows * kPitch;
    const auto otherStage = [&](u32 stage) {
        static_assert(kStages <= 2, "one tile is loaded ahead");
        return kStages == 1 ? ring : 2 * ring + kStageBytes - stage;
    };
    loadQueries(p, work, queries);
    copyAsyncCommit();
    if (begin < end) {
        loadKeys(p, scene, begin * kKeys, ring);
    }
    copyAsyncCommit();

    const int g = lane / 4;
    const int t = lane % 4;
    const int warpRow = warp * kRowTiles * 16;
    const u32 queriesAt = queries + static_cast<u32>((warpRow + lane % 16) * kPitch + lane / 16 * 16);
    u32 q[kQueryInRegisters ? kDimSteps : 1][kRowTiles][4];
    copyAsyncWait<1>();
    __syncthreads();
    if constexpr (kQueryInRegisters) {
#pragma unroll
        for (int k = 0; k < kDimSteps; ++k) {
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
                loadMatrix4(q[k][r], queriesAt + static_cast<u32>(r * 16 * kPitch + k * 32));
            }
        }
    }
    Accumulator accumulator;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            accumulator.maximum[r][half] = minusInfinity();
            accumulator.total[r][half] = 0;
        }
#pragma unroll
        for (int d = 0; d < kDimTiles; ++d) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                accumulator.sums[r][d][i] = 0;
            }
        }
    }
    u32 stage = ring;
    for (int tileNumber = begin; tileNumber < end; ++tileNumber) {
        copyAsyncWait<0>();
        __syncthreads(); // the tile is here, and all warps are done with the one before it
        if (kStages > 1 && tileNumber + 1 < end) {
            loadKeys(p, scene, (tileNumber + 1) * kKeys, otherStage(stage));
            copyAsyncCommit();
        }
        Scores scores;
        multiplyKeys(scores, stage, queriesAt, q);
        float factor = p.scale2;
        if constexpr (kCapped) {
            factor = 1;
#pragma unroll
            for (int i = 0; i < kRowTiles * kKeyTiles * 4; ++i) {
                float& score = scores[i / (kKeyTiles * 4)][i / 4 % kKeyTiles][i % 4];
                score = score2<true>(p, score);
            }
        }
        const int keyBegin = tileNumber * kKeys;
        if (keyBegin < scene.last.lo || keyBegin + kKeys - 1 > scene.first.hi) {
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const KeyRange range = ranges[warpRow + r * 16 + half * 8 + g];
#pragma unroll
                    for (int j = 0; j < kKeyTiles; ++j) {
#pragma unroll
                        for (int i = 0; i < 2; ++i) {
                            const int key = keyBegin + j * 8 + 2 * t + i;
                            if (key < range.lo || key > range.hi) {
                                scores[r][j][half * 2 + i] = minusInfinity();
                            }
                        }
                    }
                }
            }
        }
        softmax(accumulator, scores, factor);
        multiplyValues(accumulator, scores, stage + kKeys * kPitch);
        if (kStages == 1 && tileNumber + 1 < end) {
            __syncthreads();
            loadKeys(p, scene, (tileNumber + 1) * kKeys, otherStage(stage));
            copyAsyncCommit();
        }
        stage = otherStage(stage);
    }
    copyAsyncWait<0>();
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = quadSum(accumulator.total[r][half]);
            const Pair pair = pairOf(work, warpRow + r * 16 + half * 8 + g);
            if (!pair.inside) {
                continue;
            }
            const float sink = sink2(p, pair.head);
            const float best = fmaxf(accumulator.maximum[r][half], sink);
            const float share = exp2Fast(accumulator.maximum[r][half] - safeMaximum(best));
            const float total = sum * share + exp2Fast(sink - safeMaximum(best));
            const float inverse = total == 0 ? 0.0F : share / total;
            Out* out = static_cast<Out*>(p.out) + pair.row * p.outStride + static_cast<i64>(pair.head) * kDim + 2 * t;
#pragma unroll
            for (int d = 0; d < kDimTiles; ++d) {
                storePair(out + d * 8, accumulator.sums[r][d][half * 2] * inverse,
                          accumulator.sums[r][d][half * 2 + 1] * inverse);
            }
            if (p.lse != nullptr && t == 0) {
                p.lse[static_cast<i64>(pair.row) * p.heads + pair.head] = naturalLse(best, total);
            }
        }
    }
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One row of q at a time: see attention_mma.cuh.
//
// partials: for each row index and split, heads * headDim floats (weighted sums of values), and behind all of these, for
// each row index and split, heads * 2 floats (maximum and sum, base 2).

#include "device/attention_mma.cuh"

namespace vt {

namespace decode {

using namespace tile;

inline constexpr int kWarps = 4;
inline constexpr int kTileKeys = 16 * kWarps;
inline constexpr int kRows = kGroup < 16 ? kGroup : 16; ///< heads of a block
inline constexpr int kHeadTiles = ceilDiv(kGroup, 16);  ///< blocks that share a key head
inline constexpr bool kUpperRows = kGroup > 8;          ///< rows 8 to 15 of the tile are used
inline constexpr int kStageBytes = 2 * 16 * kPitch;     ///< of a warp: 16 keys and values
inline constexpr int kStages = VT_DECODE_STAGES;
inline constexpr bool kQueryInShared = kDim > 128; ///< registers would not suffice
inline constexpr int kBlocksOfSm = kDim <= 64 ? 4 : kDim <= 128 ? 2 : 1;
inline constexpr int kWholeTiles = 4;   ///< contexts up to this many tiles are not split
inline constexpr int kTilesOfSplit = 2; ///< at least
inline constexpr int kCounters = 1 << 14;

/// Blocks of a row that have finished; whoever finishes last sets it back to 0.
__device__ unsigned counters[kCounters];

struct Row {
    int row, sequence, rowBegin, rowEnd;
};

/// The row of index z, or row -1 when it is not ours.
__device__ __forceinline__ Row rowOf(const AttentionParams& p, int index) {
    if (p.byRow == 0) {
        const int begin = p.offsets[index];
        const int end = p.offsets[index + 1];
        return {end - begin == 1 ? begin : -1, index, begin, end};
    }
    int low = 0;
    int high = p.cache.sequences - 1;
    if (index < p.cache.sequences && p.offsets[index] == index && p.offsets[index + 1] == index + 1) {
        low = high = index;
    }
    while (low < high) {
        const int middle = (low + high) / 2;
        if (p.offsets[middle + 1] > index) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return {index, low, p.offsets[low], p.offsets[low + 1]};
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

/// Results of a block's warps, in shared memory.
struct WarpResults {
    float maxima[kWarps][16];
    float totals[kWarps][16];
};

} // namespace decode

extern "C" __global__ void __launch_bounds__(128, decode::kBlocksOfSm)
    attention_decode(const __grid_constant__ AttentionParams p) {
    using namespace decode;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ WarpResults results;
    __shared__ bool isLast;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int split = static_cast<int>(blockIdx.x);
    const int kvHead = static_cast<int>(blockIdx.y) / kHeadTiles;
    const int headInGroup = static_cast<int>(blockIdx.y) % kHeadTiles * 16;
    const int headBegin = kvHead * kGroup + headInGroup;
    const int rows = kGroup - headInGroup < 16 ? kGroup - headInGroup : 16;
    const int index = static_cast<int>(blockIdx.z);
    pdl::wait();
    pdl::launchDependents();
    const Row row = rowOf(p, index);
    if (row.row < 0) {
        return;
    }
    const SequenceKeys keys(p, row.sequence, row.rowBegin, row.rowEnd);
    const KeyRange range = visibleKeys(p, keys.first(), keys.last(), p.positions[row.row]);
    const int firstTile = range.lo / kTileKeys;
    const int tiles = range.lo > range.hi ? 0 : range.hi / kTileKeys - firstTile + 1;
    const Cut cut = cutTiles(p, tiles);
    if (split >= cut.splits) {
        return;
    }
    const int tileBegin = firstTile + split * cut.tilesOfSplit;
    const int tileEnd =
        tileBegin + cut.tilesOfSplit < firstTile + tiles ? tileBegin + cut.tilesOfSplit : firstTile + tiles;

    // The warp's own ring of stages.
    const u32 ring = sharedAddress(shared) + static_cast<u32>(warp * kStages * kStageBytes);
    const T* dummy = static_cast<const T*>(p.q);
    const auto issue = [&](int tileNumber) {
        if (tileNumber < tileEnd) {
            const u32 stage = ring + static_cast<u32>((tileNumber - tileBegin) % kStages * kStageBytes);
            const int position = tileNumber * kTileKeys + warp * 16 + lane % 16;
            const bool wanted = position >= range.lo && position <= range.hi;
            const T* mine = !wanted ? nullptr : lane < 16 ? keys.key<T>(p, position) : keys.value<T>(p, position);
            mine = mine == nullptr ? nullptr : mine + static_cast<i64>(kvHead) * kDim;
#pragma unroll
            for (int i = 0; i < 2 * kPieces / 2; ++i) {
                const int piece = i * 32 + lane; // of 2 * 16 * kPieces: keys, then values
                const int from = piece / kPieces;
                const auto address =
                    reinterpret_cast<const T*>(__shfl_sync(kAllLanes, reinterpret_cast<u64>(mine), from));
                const bool valid = address != nullptr;
                copyAsync16(stage + static_cast<u32>(from * kPitch + piece % kPieces * 16),
                            valid ? address + piece % kPieces * 8 : dummy, valid);
            }
        }
        copyAsyncCommit();
    };
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) {
        issue(tileBegin + i);
    }

    const int g = lane / 4;
    const int t = lane % 4;
    u32 q[kQueryInShared ? 1 : kDimSteps][4];
    const T* queries = static_cast<const T*>(p.q) + row.row * p.qStride + static_cast<i64>(headBegin) * kDim;
    const u32 queryAt = sharedAddress(shared) + kWarps * kStages * kStageBytes;
    if constexpr (kQueryInShared) {
        for (int piece = static_cast<int>(threadIdx.x); piece < 16 * kPieces; piece += 32 * kWarps) {
            const int r = piece / kPieces;
            u32x4 value{0, 0, 0, 0};
            if (r < rows) {
                value = *reinterpret_cast<const u32x4*>(queries + r * kDim + piece % kPieces * 8);
            }
            *reinterpret_cast<u32x4*>(shared + kWarps * kStages * kStageBytes + r * kPitch + piece % kPieces * 16) =
                value;
        }
        __syncthreads();
    } else {
#pragma unroll
        for (int k = 0; k < kDimSteps; ++k) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const T* at = queries + k * 16 + half * 8 + 2 * t;
                q[k][2 * half] = g < rows ? *reinterpret_cast<const u32*>(at + g * kDim) : 0;
                q[k][2 * half + 1] =
                    kUpperRows && g + 8 < rows ? *reinterpret_cast<const u32*>(at + (g + 8) * kDim) : 0;
            }
        }
    }
    constexpr int kHalves = kUpperRows ? 2 : 1;
    float sums[kDimTiles][4] = {};
    float maximum[2] = {minusInfinity(), minusInfinity()};
    float total[2] = {0, 0};
    for (int tileNumber = tileBegin; tileNumber < tileEnd; ++tileNumber) {
        copyAsyncWait<kStages - 2>();
        __syncwarp();
        const u32 stage = ring + static_cast<u32>((tileNumber - tileBegin) % kStages * kStageBytes);
        float scores[2][4] = {};
#pragma unroll
        for (int k = 0; k < kDimSteps; ++k) {
            u32 b[4];
            loadMatrix4(b, stage + keyMatrixOffset(lane) + k * 32);
            u32(&a)[4] = q[kQueryInShared ? 0 : k];
            if constexpr (kQueryInShared) {
                loadMatrix4(a, queryAt + static_cast<u32>(lane % 16 * kPitch + lane / 16 * 16 + k * 32));
            }
            mma16816<T>(scores[0], a, b[0], b[1]);
            mma16816<T>(scores[1], a, b[2], b[3]);
        }
        const int position = tileNumber * kTileKeys + warp * 16 + 2 * t;
        float shrink[2] = {1, 1};
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
            float best = minusInfinity();
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int key = position + i / 2 * 8 + i % 2;
                float& score = scores[i / 2][half * 2 + i % 2];
                score = key >= range.lo && key <= range.hi ? score2<kCapped>(p, score) : minusInfinity();
                best = fmaxf(best, score);
            }
            const float next = fmaxf(maximum[half], quadMax(best));
            const float base = safeMaximum(next);
            shrink[half] = exp2Fast(maximum[half] - base);
            maximum[half] = next;
            total[half] *= shrink[half];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& score = scores[i / 2][half * 2 + i % 2];
                score = exp2Fast(score - base);
                total[half] += score;
            }
        }
        const u32 a[4] = {packPair<T>(scores[0][0], scores[0][1]), packPair<T>(scores[0][2], scores[0][3]),
                          packPair<T>(scores[1][0], scores[1][1]), packPair<T>(scores[1][2], scores[1][3])};
#pragma unroll
        for (int d = 0; d < kDimTiles; d += 2) {
            u32 b[4];
            loadMatrix4Transposed(b, stage + 16 * kPitch + valueMatrixOffset(lane) + d * 16);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums[d][i] *= shrink[i / 2];
                sums[d + 1][i] *= shrink[i / 2];
            }
            mma16816<T>(sums[d], a, b[0], b[1]);
            mma16816<T>(sums[d + 1], a, b[2], b[3]);
        }
        __syncwarp();
        issue(tileNumber + kStages - 1);
    }
    copyAsyncWait<0>();
    __syncthreads();

    // Merge the warps, in their order; the stages' memory holds their sums.
    float* merged = reinterpret_cast<float*>(shared); // (warps, kRows, kDim)
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
        const int r = g + half * 8;
        const float sum = quadSum(total[half]);
        if (t == 0) {
            results.maxima[warp][r] = maximum[half];
            results.totals[warp][r] = sum;
        }
        if (r < kRows) {
#pragma unroll
            for (int d = 0; d < kDimTiles; ++d) {
                float* to = merged + (warp * kRows + r) * kDim + d * 8 + 2 * t;
                to[0] = sums[d][half * 2];
                to[1] = sums[d][half * 2 + 1];
            }
        }
    }
    __syncthreads();
    const i64 entry = static_cast<i64>(index) * p.splits + split;
    const i64 entries = static_cast<i64>(gridDim.z) * p.splits;
    float* statistics = p.partials + entries * p.heads * kDim;
    for (int i = static_cast<int>(threadIdx.x); i < rows * kDim; i += 32 * kWarps) {
        const int r = i / kDim;
        const int head = headBegin + r;
        const float sink = sink2(p, head);
        float best = cut.splits == 1 ? sink : minusInfinity();
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            best = fmaxf(best, results.maxima[w][r]);
        }
        const float base = safeMaximum(best);
        float sum = 0;
        float all = cut.splits == 1 ? exp2Fast(sink - base) : 0.0F;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            const float share = exp2Fast(results.maxima[w][r] - base);
            sum += share * merged[w * kRows * kDim + i];
            all += share * results.totals[w][r];
        }
        if (cut.splits == 1) {
            static_cast<Out*>(p.out)[row.row * p.outStride + static_cast<i64>(headBegin) * kDim + i] =
                fromFloat<Out>(all == 0 ? 0.0F : sum / all);
            if (p.lse != nullptr && i % kDim == 0) {
                p.lse[static_cast<i64>(row.row) * p.heads + head] = naturalLse(best, all);
            }
        } else {
            p.partials[(entry * p.heads + headBegin) * kDim + i] = sum;
            if (i % kDim == 0) {
                statistics[(entry * p.heads + head) * 2] = best;
                statistics[(entry * p.heads + head) * 2 + 1] = all;
            }
        }
    }
    if (cut.splits == 1) {
        return;
    }

    // The last of the row's blocks merges the splits.
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* counter = counters + (static_cast<i64>(index) * gridDim.y + blockIdx.y);
        const unsigned last = static_cast<unsigned>(cut.splits - 1);
        isLast = atomicInc(counter, last) == last;
    }
    __syncthreads();
    if (!isLast) {
        return;
    }
    __threadfence();
    for (int i = static_cast<int>(threadIdx.x); i < rows * kDim; i += 32 * kWarps) {
        const int head = headBegin + i / kDim;
        const float* firstStatistics = statistics + (static_cast<i64>(index) * p.splits * p.heads + head) * 2;
        const float* firstSums = p.partials + (static_cast<i64>(index) * p.splits * p.heads + headBegin) * kDim + i;
        const float sink = sink2(p, head);
        float best = sink;
        for (int s = 0; s < cut.splits; ++s) {
            best = fmaxf(best, __ldcg(firstStatistics + static_cast<i64>(s) * p.heads * 2));
        }
        const float base = safeMaximum(best);
        float sum = 0;
        float all = exp2Fast(sink - base);
#pragma unroll 4
        for (int s = 0; s < cut.splits; ++s) {
            const float* at = firstStatistics + static_cast<i64>(s) * p.heads * 2;
            const float share = exp2Fast(__ldcg(at) - base);
            sum += share * __ldcg(firstSums + static_cast<i64>(s) * p.heads * kDim);
            all += share * __ldcg(at + 1);
        }
        static_cast<Out*>(p.out)[row.row * p.outStride + static_cast<i64>(headBegin) * kDim + i] =
            fromFloat<Out>(all == 0 ? 0.0F : sum / all);
        if (p.lse != nullptr && i % kDim == 0) {
            p.lse[static_cast<i64>(row.row) * p.heads + head] = naturalLse(best, all);
        }
    }
}

} // namespace vt

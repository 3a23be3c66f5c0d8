// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Finds which tiles of 64 keys each row sees, whole or in part. It runs for masks whose rows are not intervals. The
// kernels after it skip tiles that are not seen, and evaluate the mask only in tiles that are seen in part. A block
// takes 32 tiles of VT_TILE_ROWS rows (of one head, when the mask depends on it), a warp 8 of them. For rows of one
// sequence, interval arithmetic decides first over all tiles of the warp, then over each tile. What it cannot decide,
// and single rows, are evaluated element by element. The mask reads only inputs of the step, so all of this happens
// before the wait.

#include "device/attention/attention.cuh"
#include "device/attention/attention_seen.cuh"
#include "device/lib/pdl.cuh"

namespace vt {

namespace tiles {

inline constexpr int kRows = VT_TILE_ROWS;
inline constexpr int kTilesOfWarp = 8;
inline constexpr u32 kAll = (1U << kTilesOfWarp) - 1;
inline constexpr int kFewestRows = 4; ///< that are worth interval arithmetic
static_assert(kTilesOfWarp * 4 == seen::kTilesOfWord, "four warps fill a word");
static_assert(kRows <= 32, "a lane holds a row's answer");

/// Neighbouring rows of one sequence, and what they are asked about.
struct Segment {
    int sequence, head;
    int row, rowEnd;
    int position;    ///< of the first
    int first, last; ///< keys that exist
    int begin;       ///< key that the warp's tiles begin at
};

/// A bit for each of the warp's tiles.
struct Bits {
    u32 some, whole;
};

/// Asks for every key of a tile.
__device__ __forceinline__ void ask(const AttentionCall& p, const Segment& at, int row, int tile, Bits& bits) {
    bool any = false;
    bool all = true;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        // No branches: what the mask reads comes for all keys at once.
        const int key = at.begin + tile * seen::kKeys + half * 32 + static_cast<int>(threadIdx.x) % 32;
        const bool exists = (key >= at.first) & (key <= at.last);
        const bool allowed = mods::maskMod(at.sequence, at.head, at.position + row - at.row, key, maskCaptures(p));
        any |= allowed & exists;
        all &= allowed | !exists;
    }
    bits.some |= __any_sync(kAllLanes, any) ? 1U << tile : 0U;
    bits.whole |= __all_sync(kAllLanes, all) ? 1U << tile : 0U;
}

#if VT_TILE_ROWS > 1
enum class Verdict { Empty, Whole, Undecided };

/// Of keys [begin, end) and all rows of a segment.
__device__ __forceinline__ Verdict decide(const AttentionCall& p, const Segment& at, int begin, int end) {
    const int low = max(begin, at.first);
    const int high = min(end - 1, at.last);
    if (low > high) {
        return Verdict::Empty;
    }
    const span::Span result =
        mods::maskSpan(span::exact(at.sequence), span::exact(at.head),
                       {at.position, at.position + at.rowEnd - at.row - 1}, {low, high}, maskCaptures(p));
    return result.high == 0 ? Verdict::Empty : result.low == 1 ? Verdict::Whole : Verdict::Undecided;
}

/// What is decided about the warp's tiles, into `bits`; gives those that are not.
__device__ __forceinline__ u32 decideTiles(const AttentionCall& p, const Segment& at, Bits& bits) {
    const Verdict together = decide(p, at, at.begin, at.begin + kTilesOfWarp * seen::kKeys);
    if (together != Verdict::Undecided) {
        bits = together == Verdict::Whole ? Bits{kAll, kAll} : Bits{0, 0};
        return 0;
    }
    u32 open = 0;
#pragma unroll 1
    for (int tile = 0; tile < kTilesOfWarp; ++tile) {
        const int begin = at.begin + tile * seen::kKeys;
        const Verdict one = decide(p, at, begin, begin + seen::kKeys);
        open |= one == Verdict::Undecided ? 1U << tile : 0U;
        bits.some |= one == Verdict::Whole ? 1U << tile : 0U;
        bits.whole |= one == Verdict::Whole ? 1U << tile : 0U;
    }
    return open;
}
#endif

/// A row that stands alone.
__device__ __forceinline__ void askRow(const AttentionCall& p, const Segment& at, Bits& bits) {
    const KeyRange range = visibleKeys(p, at.sequence, at.head, at.first, at.last, at.position);
    if (range.lo <= range.hi && at.begin <= range.hi && at.begin + kTilesOfWarp * seen::kKeys > range.lo) {
#pragma unroll
        for (int tile = 0; tile < kTilesOfWarp; ++tile) {
            ask(p, at, at.row, tile, bits);
        }
    }
}

/// `mine` is what the lane's row sees: row `rowBegin` is lane 0's.
__device__ __forceinline__ void askSegment(const AttentionCall& p, const Segment& at, int rowBegin, Bits& mine) {
    const int row = rowBegin + static_cast<int>(threadIdx.x) % 32;
#if VT_TILE_ROWS > 1
    if (at.rowEnd - at.row >= kFewestRows) {
        Bits decided{0, 0};
        const u32 open = decideTiles(p, at, decided);
        if (row >= at.row && row < at.rowEnd) {
            mine = decided;
        }
#pragma unroll 1
        for (u32 left = open; left != 0; left &= left - 1) {
            const int tile = __ffs(static_cast<int>(left)) - 1;
#pragma unroll 4
            for (int r = at.row; r < at.rowEnd; ++r) {
                Bits one{0, 0};
                ask(p, at, r, tile, one);
                mine.some |= r == row ? one.some : 0;
                mine.whole |= r == row ? one.whole : 0;
            }
        }
        return;
    }
#endif
    Segment alone = at;
#pragma unroll 1
    for (; alone.row < at.rowEnd; ++alone.row, ++alone.position) {
        Bits one{0, 0};
        askRow(p, alone, one);
        mine = alone.row == row ? one : mine;
    }
}

} // namespace tiles

extern "C" __global__ void __launch_bounds__(128) attention_tiles(const __grid_constant__ AttentionCall p) {
    using namespace tiles;
    pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int index = static_cast<int>(blockIdx.x) % p.tileWords;
    const int group = static_cast<int>(blockIdx.x) / p.tileWords;
    const int head = group % p.tileHeads;
    const int rowBegin = group / p.tileHeads * kRows;
    const int rowEnd = min(rowBegin + kRows, p.tokens);
    Bits mine{0, 0};
    for (int row = rowBegin; row < rowEnd;) {
        const int sequence = sequenceOf(p, row);
        const int sequenceEnd = p.offsets[sequence + 1];
        const SequenceKeys keys(p, sequence, p.offsets[sequence], sequenceEnd);
        const int first = keys.first();
        const int begin = (seen::firstTile(first) + index * seen::kTilesOfWord + warp * kTilesOfWarp) * seen::kKeys;
        const int end = max(row + 1, min(rowEnd, sequenceEnd));
        askSegment(p, {sequence, head, row, end, p.positions[row], first, keys.last(), begin}, rowBegin, mine);
        row = end;
    }
    pdl::wait();
    if (rowBegin + lane < rowEnd) {
        const i64 entry = static_cast<i64>(rowBegin + lane) * p.tileHeads + head;
        seen::AttentionTiles& to = p.tiles[entry * p.tileWords + index];
        reinterpret_cast<unsigned char*>(&to.some)[warp] = static_cast<unsigned char>(mine.some);
        reinterpret_cast<unsigned char*>(&to.whole)[warp] = static_cast<unsigned char>(mine.whole);
    }
}

} // namespace vt

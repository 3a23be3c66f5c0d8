// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Asks a mask whose rows are no intervals once for each (row, key) between the ends of what the row may see, and writes which
// tiles of 64 keys it sees, whole or in part: the kernels behind this one skip the others and ask only where a tile is seen in
// part. A block takes 32 tiles of one row (of one head, when the mask depends on it), a warp 8 of them. What is asked are the
// step's inputs, so all of it happens before the wait.

#include "device/attention.cuh"
#include "device/attention_seen.cuh"
#include "device/pdl.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(128) attention_tiles(const __grid_constant__ AttentionCall p) {
    constexpr int kTilesOfWarp = 8;
    static_assert(kTilesOfWarp * 4 == seen::kTilesOfWord, "four warps fill a word");
    pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int index = static_cast<int>(blockIdx.x) % p.tileWords;
    const int entry = static_cast<int>(blockIdx.x) / p.tileWords;
    const int row = entry / p.tileHeads;
    const int head = entry % p.tileHeads;
    const int sequence = sequenceOf(p, row);
    const int position = p.positions[row];
    const SequenceKeys keys(p, sequence, p.offsets[sequence], p.offsets[sequence + 1]);
    const int first = keys.first();
    const int last = keys.last();
    const KeyRange range = visibleKeys(p, sequence, head, first, last, position);
    const int begin = (seen::firstTile(first) + index * seen::kTilesOfWord + warp * kTilesOfWarp) * seen::kKeys;
    u32 some = 0;
    u32 whole = 0;
    if (range.lo <= range.hi && begin <= range.hi && begin + kTilesOfWarp * seen::kKeys > range.lo) {
#pragma unroll
        for (int tile = 0; tile < kTilesOfWarp; ++tile) {
            bool any = false;
            bool all = true;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                // No branches: what the mask reads comes for all keys at once.
                const int key = begin + tile * seen::kKeys + half * 32 + lane;
                const bool allowed = mods::maskMod(sequence, head, position, key, maskCaptures(p)) & (key >= range.lo) &
                                     (key <= range.hi);
                any |= allowed;
                all &= allowed | (key < first) | (key > last);
            }
            some |= __any_sync(kAllLanes, any) ? 1U << tile : 0U;
            whole |= __all_sync(kAllLanes, all) ? 1U << tile : 0U;
        }
    }
    pdl::wait();
    if (lane == 0) {
        seen::AttentionTiles& to = p.tiles[blockIdx.x];
        reinterpret_cast<unsigned char*>(&to.some)[warp] = static_cast<unsigned char>(some);
        reinterpret_cast<unsigned char*>(&to.whole)[warp] = static_cast<unsigned char>(whole);
    }
}

} // namespace vt

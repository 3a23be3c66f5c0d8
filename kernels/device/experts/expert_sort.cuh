// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Stable counting sort of pairs by expert in one block: each warp counts a stretch of the pairs, a scan gives every
// warp its first row of every expert, and each warp places its stretch in order. Rows of an expert start at a tile's
// start.

#include "device/abi/expert_sort.h"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

constexpr int kWarps = VT_WARPS;
constexpr int kBatch = 8; ///< loads of a lane under way at once

/// The experts of pairs first, first + 32, ...; -1 from `end` on.
__device__ __forceinline__ void loadBatch(const abi::ExpertSortParams& p, int first, int end, int (&experts)[kBatch]) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
        const int pair = first + 32 * i;
        experts[i] = pair < end ? p.ids[pair] : -1;
    }
}

/// Exclusive sum over the block of one value a thread; `slots` holds kWarps ints. `total` is the sum of all.
__device__ __forceinline__ int exclusiveSum(int value, int* slots, int& total) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int inclusive = value;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const int below = __shfl_up_sync(vt::kAllLanes, inclusive, offset);
        inclusive += lane >= offset ? below : 0;
    }
    __syncthreads();
    if (lane == 31) {
        slots[threadIdx.x / 32] = inclusive;
    }
    __syncthreads();
    int before = 0;
    total = 0;
#pragma unroll 4
    for (int warp = 0; warp < kWarps; ++warp) {
        before += warp < static_cast<int>(threadIdx.x / 32) ? slots[warp] : 0;
        total += slots[warp];
    }
    return before + inclusive - value;
}

/// Gives each expert its tiles: counts become first rows, tiles are written. Returns the number of tiles.
__device__ __forceinline__ int placeTiles(const abi::ExpertSortParams& p, int* counts, int* sums) {
    const int thread = static_cast<int>(threadIdx.x);
    int firstTile = 0;
    for (int base = 0; base < p.experts; base += kWarps * 32) {
        const int expert = base + thread;
        int rows = 0;
        if (expert < p.experts) {
#pragma unroll 4
            for (int w = 0; w < kWarps; ++w) {
                rows += counts[w * p.experts + expert];
            }
        }
        const int tiles = vt::ceilDiv(rows, abi::kExpertTile);
        int total;
        const int tile = firstTile + exclusiveSum(tiles, sums, total);
        firstTile += total;
        if (expert < p.experts) {
            int row = tile * abi::kExpertTile;
#pragma unroll 4
            for (int w = 0; w < kWarps; ++w) {
                const int count = counts[w * p.experts + expert];
                counts[w * p.experts + expert] = row;
                row += count;
            }
            for (int i = 0; i < tiles; ++i) {
                p.tiles[2 * (tile + i)] = expert;
                p.tiles[2 * (tile + i) + 1] = min(abi::kExpertTile, rows - i * abi::kExpertTile);
            }
        }
    }
    return firstTile;
}

} // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32, 1)
    expert_sort(const __grid_constant__ abi::ExpertSortParams p) {
    extern __shared__ int counts[]; // (warps, experts): pairs counted, then the next row; after it the scan's slots
    int* sums = counts + kWarps * p.experts;
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    for (int i = thread; i < kWarps * p.experts; i += kWarps * 32) {
        counts[i] = 0;
    }
    vt::pdl::wait();
    vt::pdl::launchDependents();
    __syncthreads();

    int* mine = counts + warp * p.experts;
    const int stretch = vt::ceilDiv(vt::ceilDiv(p.pairs, kWarps), 32) * 32;
    const int begin = warp * stretch;
    const int end = min(p.pairs, begin + stretch);
    for (int base = begin; base < end; base += 32 * kBatch) {
        int experts[kBatch];
        loadBatch(p, base + lane, end, experts);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
            if (experts[i] >= 0) {
                atomicAdd(mine + experts[i], 1);
            }
        }
    }
    __syncthreads();

    const int tiles = placeTiles(p, counts, sums);
    if (thread == 0) {
        *p.tileCount = tiles;
    }
    // All slots are unused until they get a pair. The whole block writes them, because few tokens leave most unused.
    for (int i = thread; i < tiles * (abi::kExpertTile / 4); i += kWarps * 32) {
        reinterpret_cast<int4*>(p.slots)[i] = make_int4(-1, -1, -1, -1);
    }
    __syncthreads();

    for (int base = begin; base < end; base += 32 * kBatch) {
        int experts[kBatch];
        loadBatch(p, base + lane, end, experts);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
            const vt::u32 same = __match_any_sync(vt::kAllLanes, experts[i]);
            const int rank = __popc(same & ((1U << lane) - 1));
            if (experts[i] >= 0) {
                p.slots[mine[experts[i]] + rank] = base + 32 * i + lane;
            }
            __syncwarp();
            if (experts[i] >= 0 && rank == 0) {
                mine[experts[i]] += __popc(same);
            }
            __syncwarp();
        }
    }
}

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Pairs (token, choice) of a small batch grouped by expert, by every block for itself.

#include "device/expert_stream.cuh"

namespace vt::experts {

inline constexpr int kMaxPairs = 512;

/// The (expert, up to 8 * kTiles of its pairs) items of a batch, in order of expert and pair. Every block makes the
/// list for itself from the ids.
template <int kTiles> struct ItemList {
    static constexpr int kPairs = 8 * kTiles; ///< of an item at most
    short ids[kMaxPairs];
    int starts[VT_EXPERTS + 1]; ///< items before each expert

    /// All threads of the block, `ids` readable by this kernel.
    __device__ __forceinline__ void make(const int* from, int pairs) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int i = static_cast<int>(threadIdx.x); i < pairs; i += kThreads) {
            int id;
            asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(id) : "l"(from + i));
            ids[i] = static_cast<short>(id);
        }
        __syncthreads();
        for (int expert = static_cast<int>(threadIdx.x) / 32; expert < VT_EXPERTS; expert += kThreads / 32) {
            int count = 0;
            for (int i = 0; i < pairs; i += 32) {
                count += __popc(__ballot_sync(kAllLanes, i + lane < pairs && ids[i + lane] == expert));
            }
            if (lane == 0) {
                starts[expert + 1] = ceilDiv(count, kPairs);
            }
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            int before = 0;
            for (int first = 0; first < VT_EXPERTS; first += 32) {
                int items = first + lane < VT_EXPERTS ? starts[first + lane + 1] : 0;
#pragma unroll
                for (int offset = 1; offset < 32; offset *= 2) {
                    const int other = __shfl_up_sync(kAllLanes, items, offset);
                    items += lane >= offset ? other : 0;
                }
                if (first + lane < VT_EXPERTS) {
                    starts[first + lane + 1] = before + items;
                }
                before += __shfl_sync(kAllLanes, items, 31);
            }
            if (lane == 0) {
                starts[0] = 0;
            }
        }
        __syncthreads();
    }
    __device__ __forceinline__ int count() const { return starts[VT_EXPERTS]; }
    /// By a whole warp.
    __device__ __forceinline__ int expertOf(int item) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int first = 0; first < VT_EXPERTS; first += 32) {
            const int expert = first + lane;
            const bool here = expert < VT_EXPERTS && starts[expert] <= item && item < starts[expert + 1];
            const u32 found = __ballot_sync(kAllLanes, here);
            if (found != 0) {
                return first + __ffs(static_cast<int>(found)) - 1;
            }
        }
        return 0;
    }
    /// By a whole warp: the pairs of an item into `out` (kPairs numbers, -1 where there is none), as this lane sees
    /// them at `out[column]` after a __syncwarp.
    __device__ __forceinline__ void pairsOf(int item, int expert, int pairs, int* out) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if (lane < kPairs) {
            out[lane] = -1;
        }
        __syncwarp();
        int before = -(item - starts[expert]) * kPairs;
        for (int i = 0; i < pairs; i += 32) {
            const u32 same = __ballot_sync(kAllLanes, i + lane < pairs && ids[i + lane] == expert);
            const int at = before + __popc(same & ((1U << lane) - 1));
            if (((same >> lane) & 1) != 0 && at >= 0 && at < kPairs) {
                out[at] = i + lane;
            }
            before += __popc(same);
        }
        __syncwarp();
    }
};

} // namespace vt::experts

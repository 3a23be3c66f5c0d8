// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Pairs (token, choice) of a small batch grouped by expert, by every block for itself.

#include "device/experts/expert_ring.cuh"

namespace vt::experts {

inline constexpr int kMaxPairs = 512;

/// The (expert, up to 8 * kTiles of its pairs) items of a batch, in order of expert and pair. Every block makes the
/// list for itself from the ids. Functions are for whole warps unless they say otherwise.
template <int kTiles> class ItemList {
public:
    static constexpr int kPairs = 8 * kTiles; ///< of an item at most

    /// All threads, before the block's barrier in front of `make`.
    __device__ __forceinline__ void clear() {
        for (int i = static_cast<int>(threadIdx.x); i < VT_EXPERTS; i += static_cast<int>(blockDim.x)) {
            counts_[i] = 0;
        }
    }
    /// All threads of the block, `ids` readable by this kernel. The call ends with a barrier.
    __device__ __forceinline__ void make(const int* from, int pairs) {
        for (int i = static_cast<int>(threadIdx.x); i < pairs; i += static_cast<int>(blockDim.x)) {
            int id;
            asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(id) : "l"(from + i));
            ids_[i] = static_cast<short>(id);
            if (id >= 0 && id < VT_EXPERTS) {
                atomicAdd(&counts_[id], 1);
            }
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            addUp();
        }
        __syncthreads();
    }
    /// One thread will do. Items of all experts.
    __device__ __forceinline__ int count() const { return items_[VT_EXPERTS]; }

    __device__ __forceinline__ int expertOf(int item) const { return expertAt(items_, item); }

    /// One thread will do. Pairs of an item.
    __device__ __forceinline__ int pairsIn(int item, int expert) const {
        const int left = counts_[expert] - (item - items_[expert]) * kPairs;
        return left < kPairs ? left : kPairs;
    }

    /// The pairs of an item into `out` (kPairs numbers, -1 where there is none), after a __syncwarp.
    __device__ __forceinline__ void pairsOf(int item, int expert, int pairs, int* out) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        __syncwarp();
        if (lane < kPairs) {
            out[lane] = -1;
        }
        __syncwarp();
        int before = -(item - items_[expert]) * kPairs;
        for (int i = 0; i < pairs; i += 32) {
            const u32 same = __ballot_sync(kAllLanes, i + lane < pairs && ids_[i + lane] == expert);
            const int at = before + __popc(same & ((1U << lane) - 1));
            if (((same >> lane) & 1) != 0 && at >= 0 && at < kPairs) {
                out[at] = i + lane;
            }
            before += __popc(same);
        }
        __syncwarp();
    }

    /// Where part `part` of `parts` begins in the units of all items, each of `unitsOfItem`: the parts cost the same.
    __device__ __forceinline__ int beginOf(int part, int parts, int unitsOfItem) const {
        const i64 all = static_cast<i64>(costs_[VT_EXPERTS]) * unitsOfItem;
        const int begin = static_cast<int>(all * part / parts);
        if (part == parts) {
            return count() * unitsOfItem;
        }
        const int expert = expertAt(costs_, begin / unitsOfItem);
        const int inside = begin - costs_[expert] * unitsOfItem;
        const int last = items_[expert + 1] - items_[expert] - 1;
        const int before = min(inside / (costOf(kPairs) * unitsOfItem), last); // items of the expert, all full
        const int cost = costOf(pairsIn(items_[expert] + before, expert));
        return (items_[expert] + before) * unitsOfItem + (inside - before * costOf(kPairs) * unitsOfItem) / cost;
    }

private:
    /// What an item costs beside others: products of a second tile are not free, as measured.
    __device__ __forceinline__ static int costOf(int pairs) { return pairs > 8 ? 5 : 4; }

    /// By one warp.
    __device__ __forceinline__ void addUp() {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        int itemsBefore = 0;
        int costBefore = 0;
        for (int first = 0; first < VT_EXPERTS; first += 32) {
            const int pairs = first + lane < VT_EXPERTS ? counts_[first + lane] : 0;
            int items = ceilDiv(pairs, kPairs);
            int cost = items == 0 ? 0 : (items - 1) * costOf(kPairs) + costOf(pairs - (items - 1) * kPairs);
#pragma unroll
            for (int offset = 1; offset < 32; offset *= 2) {
                const int otherItems = __shfl_up_sync(kAllLanes, items, offset);
                const int otherCost = __shfl_up_sync(kAllLanes, cost, offset);
                items += lane >= offset ? otherItems : 0;
                cost += lane >= offset ? otherCost : 0;
            }
            if (first + lane < VT_EXPERTS) {
                items_[first + lane + 1] = itemsBefore + items;
                costs_[first + lane + 1] = costBefore + cost;
            }
            itemsBefore += __shfl_sync(kAllLanes, items, 31);
            costBefore += __shfl_sync(kAllLanes, cost, 31);
        }
        if (lane == 0) {
            items_[0] = 0;
            costs_[0] = 0;
        }
    }
    /// The expert in whose stretch of the sums `place` lies.
    __device__ __forceinline__ static int expertAt(const int (&sums)[VT_EXPERTS + 1], int place) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int first = 0; first < VT_EXPERTS; first += 32) {
            const int expert = first + lane;
            const bool here = expert < VT_EXPERTS && sums[expert] <= place && place < sums[expert + 1];
            const u32 found = __ballot_sync(kAllLanes, here);
            if (found != 0) {
                return first + __ffs(static_cast<int>(found)) - 1;
            }
        }
        return 0;
    }

    short ids_[kMaxPairs];
    int counts_[VT_EXPERTS];    ///< pairs
    int items_[VT_EXPERTS + 1]; ///< items before each expert
    int costs_[VT_EXPERTS + 1]; ///< what they cost
};

} // namespace vt::experts

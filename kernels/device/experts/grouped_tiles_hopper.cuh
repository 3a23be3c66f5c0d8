// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the grouped products on Hopper share: a ring of stages that a producer thread fills by tensor copies and two
// warpgroups read, and the list of tiles, which every block makes from the starts of the experts.

#include "device/abi/grouped_matmul.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"
#include "device/lib/wgmma.cuh"

namespace vt::grouped_hopper {

inline constexpr int kStages = VT_STAGES;
inline constexpr int kConsumers = 2;          ///< warpgroups
inline constexpr int kBlocks = VT_ROW_BLOCKS; ///< of 64 rows of the result that a consumer makes
inline constexpr int kTileRows = 64 * kBlocks * kConsumers;
inline constexpr int kColumns = VT_COLUMNS;
inline constexpr int kDepth = 64;         ///< of the contracted axis in a stage
inline constexpr int kSubtile = 64 * 128; ///< bytes of 64 rows of 64 values
inline constexpr int kSubtiles = (kColumns + 63) / 64;
inline constexpr int kLeftBytes = kConsumers * kBlocks * kSubtile;
inline constexpr int kRightBytes = kSubtiles * kSubtile;
inline constexpr int kStageBytes = kLeftBytes + kRightBytes;
inline constexpr int kBarriersAt = kStages * kStageBytes;
inline constexpr int kMostExperts =
    vitrine::kernels::abi::kGroupedMatmulExperts; ///< their tiles take the kilobyte that the stages leave
inline constexpr int kThreads = 384;

/// Whether the producer's registers go to the consumers. Only where the sums need more than an equal share: a block is
/// then launched with all registers of its multiprocessor. One with fewer would wait for registers that a block of the
/// next kernel may hold, which itself waits for this kernel.
inline constexpr bool kMovesRegisters = kBlocks * kColumns / 2 > 128;

__device__ __forceinline__ void becomeProducer() {
    if constexpr (kMovesRegisters) {
        wgmma::giveRegisters<24>();
    }
}
__device__ __forceinline__ void becomeConsumer() {
    if constexpr (kMovesRegisters) {
        wgmma::takeRegisters<240>();
    }
}

struct Ring {
    u32 base;
    int stage = 0;
    u32 phase = 0;

    __device__ __forceinline__ u32 left() const { return base + static_cast<u32>(stage * kStageBytes); }
    __device__ __forceinline__ u32 right() const { return left() + kLeftBytes; }
    __device__ __forceinline__ u32 full() const { return base + static_cast<u32>(kBarriersAt + 8 * stage); }
    __device__ __forceinline__ u32 empty() const { return full() + 8 * kStages; }
    __device__ __forceinline__ u32 emptyBefore() const {
        return base + static_cast<u32>(kBarriersAt + 8 * kStages + 8 * (stage == 0 ? kStages - 1 : stage - 1));
    }
    __device__ __forceinline__ void next() {
        ++stage;
        if (stage == kStages) {
            stage = 0;
            phase ^= 1;
        }
    }
    /// By one thread. Every warp of a consumer says when it has read a stage: one that is behind must not miss a phase.
    __device__ __forceinline__ void begin() const {
        for (int i = 0; i < kStages; ++i) {
            barrier::init(base + static_cast<u32>(kBarriersAt + 8 * i), 1);
            barrier::init(base + static_cast<u32>(kBarriersAt + 8 * (kStages + i)), kConsumers * 4);
        }
        barrier::fenceInit();
    }
};

/// Numbers the pieces of work of all experts. `before` holds kMostExperts + 1 ints in shared memory.
class ExpertTiles {
public:
    /// All threads; ends with a barrier. piecesOf(rows) is how many pieces an expert with so many rows has.
    template <class PiecesOf>
    __device__ __forceinline__ void make(const int* starts, int experts, int* before, const PiecesOf& piecesOf) {
        before_ = before;
        experts_ = experts;
        for (int e = static_cast<int>(threadIdx.x); e < experts; e += kThreads) {
            before[e + 1] = piecesOf(starts[e + 1] - starts[e]);
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            const int lane = static_cast<int>(threadIdx.x);
            int sum = 0;
            for (int first = 0; first < experts; first += 32) {
                int value = first + lane < experts ? before[first + lane + 1] : 0;
                for (int offset = 1; offset < 32; offset *= 2) {
                    const int below = __shfl_up_sync(kAllLanes, value, offset);
                    value += lane >= offset ? below : 0;
                }
                if (first + lane < experts) {
                    before[first + lane + 1] = sum + value;
                }
                sum += __shfl_sync(kAllLanes, value, 31);
            }
            if (lane == 0) {
                before[0] = 0;
            }
        }
        __syncthreads();
    }
    __device__ __forceinline__ int count() const { return before_[experts_]; }
    /// The expert of a piece; `piece` becomes its number inside the expert.
    __device__ __forceinline__ int find(int& piece) const {
        int low = 0;
        int high = experts_;
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (before_[middle] <= piece) {
                low = middle;
            } else {
                high = middle;
            }
        }
        piece -= before_[low];
        return low;
    }

private:
    const int* before_ = nullptr;
    int experts_ = 0;
};

using Sums = float[kBlocks][kColumns / 2];

__device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
        for (int i = 0; i < kColumns / 2; ++i) {
            sums[block][i] = 0;
        }
    }
}

/// One stage: the first kRowBlocks blocks of 64 rows of this warpgroup, whose subtiles lie one after the other.
template <int kRowBlocks, int kTransposedLeft, int kTransposedRight>
__device__ __forceinline__ void multiplyStage(Sums& sums, u32 left, u32 right) {
    const u64 a = wgmma::descriptor128(left);
    const u64 b = wgmma::descriptor128(right, kTransposedRight ? kSubtile : 16);
    wgmma::fence();
#pragma unroll
    for (int block = 0; block < kRowBlocks; ++block) {
#pragma unroll
        for (int step = 0; step < kDepth / 16; ++step) {
            wgmma::Product<bf16, kColumns>::template run<kTransposedRight, kTransposedLeft>(
                sums[block],
                wgmma::further(a, static_cast<u32>(block * (kSubtile / 16) + step * (kTransposedLeft ? 128 : 2))),
                wgmma::further(b, static_cast<u32>(step * (kTransposedRight ? 128 : 2))), 1);
        }
    }
    wgmma::commit();
}

} // namespace vt::grouped_hopper

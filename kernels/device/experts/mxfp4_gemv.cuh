// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experts of one token; see expert_stream.cuh. `mxfp4_gate_up` writes the activations of the k chosen experts,
// `mxfp4_down` their weighted sum. The ids are written by the kernel before mxfp4_gate_up, and mxfp4_gate_up lets its
// successor start only after its own wait: so mxfp4_down may read the ids, and bring weights, before it waits.

#include "device/abi/mxfp4_gemv.h"
#include "device/experts/expert_stream.cuh"
#include "device/rowwise/activation.cuh"

namespace vt {

using Mxfp4GemvParams = vitrine::kernels::abi::Mxfp4GemvParams;

namespace experts {

inline constexpr int kChosen = VT_CHOSEN;
inline constexpr int kUnitsOfExpert = ceilDiv(kWidth, kHalfUnit);
inline constexpr int kRowsTogether = kUnitRows / kChosen; ///< rows of the sum in a unit of mxfp4_down
static_assert(kWidth % kHalfUnit == 0 && kChosen <= 8, "units of eight pairs; a column for each expert");

using Residual = StorageOf<VT_RESIDUAL_DTYPE>;

__device__ __forceinline__ int loadFresh(const int* from) {
    int out;
    asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(out) : "l"(from));
    return out;
}

inline constexpr int kFinishers = 3; ///< warps that finish units in turns
inline constexpr int kTokenThreads = kThreads + kFinishers * 32;
inline constexpr int kBuffers = 8;

/// The rows of x and their factors are there: for the warps that multiply and those that finish.
__device__ __forceinline__ void rowsBarrier() {
    constexpr int kNumber = 4; // beside those of expert_stream.cuh
    namedBarrier(kNumber, (kWarps + kFinishers) * 32);
}

/// The sums of the multiplying warps on their way to the finishing warps: nobody waits for a result, and what has
/// arrived is multiplied at once. Lanes arrive for themselves: tools that look for races do not see that a __syncwarp
/// orders what the others did before one lane's arrival.
struct Sums {
    alignas(8) u64 summed[kBuffers];
    u64 finished[kBuffers];
    float parts[kBuffers][kTeamWarps][kUnitRows];

    /// By one thread, before the block's barrier.
    __device__ __forceinline__ void begin() {
        for (int i = 0; i < kBuffers; ++i) {
            barrier::init(sharedAddress(&summed[i]), kTeamWarps * 32);
            barrier::init(sharedAddress(&finished[i]), 32);
        }
    }
    /// By a multiplying warp: the part for unit number `unit` of this block may be written.
    __device__ __forceinline__ float* part(int unit) {
        if (unit >= kBuffers) {
            barrier::wait(sharedAddress(&finished[unit % kBuffers]), static_cast<u32>(unit / kBuffers - 1) % 2);
        }
        return parts[unit % kBuffers][memberOf()];
    }
    __device__ __forceinline__ void partWritten(int unit) { barrier::arrive(sharedAddress(&summed[unit % kBuffers])); }
    /// By a finishing warp: the sum of row lane % 16.
    __device__ __forceinline__ float take(int unit) {
        const int slot = unit % kBuffers;
        barrier::wait(sharedAddress(&summed[slot]), static_cast<u32>(unit / kBuffers) % 2);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kTeamWarps; ++i) {
            sum += parts[slot][i][threadIdx.x % kUnitRows];
        }
        barrier::arrive(sharedAddress(&finished[slot]));
        return sum;
    }
};

/// The gate and up products of one token, by a block's roles.
struct TokenGateUp {
    using S = Shape<kDim>;
    static constexpr i64 kUnits = static_cast<i64>(kChosen) * kUnitsOfExpert;

    const Mxfp4GemvParams& p;
    Ring<VT_SLOTS>& ring;
    Sums& sums;
    u32 memory;
    int begin = static_cast<int>(kUnits * blockIdx.x / gridDim.x);
    int end = static_cast<int>(kUnits * (blockIdx.x + 1) / gridDim.x);
    int id = 0; ///< of the lane's choice

    __device__ __forceinline__ void copy() {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        RingPlace<VT_SLOTS> place;
        for (int at = begin; at < end; ++at) {
            const i64 expert = __shfl_sync(kAllLanes, id, at / kUnitsOfExpert);
            const int unit = at % kUnitsOfExpert;
            const i64 base = expert * 2 * kWidth;
            UnitPiece piece;
            if (lane < kUnitRows) {
                piece.row = p.gateUpBlocks + (base + gateUpRow(unit, lane)) * (kDim / 2);
            } else if (lane < kUnitRows + 2) {
                const int half = lane - kUnitRows;
                piece.scales = p.gateUpScales + (base + gateUpRow(unit, half * kHalfUnit)) * S::kGroups;
                piece.scaleBytes = kHalfUnit * S::kGroups;
                piece.scalesTo = static_cast<u32>(half * kHalfUnit * S::kGroups);
            }
            copyUnit<kDim>(ring, memory, place, piece);
        }
    }

    __device__ __forceinline__ Bias biasOf(int at) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int inside = at < end ? at : end - 1;
        const i64 expert = __shfl_sync(kAllLanes, id, inside / kUnitsOfExpert);
        return p.gateUpBias == nullptr
                   ? Bias{}
                   : static_cast<const Bias*>(
                         p.gateUpBias)[expert * 2 * kWidth + gateUpRow(inside % kUnitsOfExpert, lane % kUnitRows)];
    }

    /// Units first, first + kFinishers, ... of the block.
    __device__ __forceinline__ void finish(int first, const float* factors) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        int at = begin + first;
        Bias bias = biasOf(at);
        rowsBarrier();
        for (; at < end; at += kFinishers) {
            const i64 pair = at / kUnitsOfExpert;
            const int unit = at % kUnitsOfExpert;
            const float sum = sums.take(at - begin) * factors[0] + (p.gateUpBias != nullptr ? toFloat(bias) : 0.0F);
            // The lane of the gate row finishes the pair.
            const float up = __shfl_down_sync(kAllLanes, sum, VT_LAYOUT == 1 ? 1 : kHalfUnit);
            if (VT_LAYOUT == 1 ? lane < kUnitRows && lane % 2 == 0 : lane < kHalfUnit) {
                const int number = VT_LAYOUT == 1 ? lane / 2 : lane;
                static_cast<bf16*>(p.active)[pair * kWidth + unit * kHalfUnit + number] =
                    fromFloat<bf16>(gatedActivation<VT_ACTIVATION>(sum, up, p.alpha, p.limit));
            }
            bias = biasOf(at + kFinishers);
        }
    }

    __device__ __forceinline__ void multiply(u32 x) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int g = lane / 4;
        RingPlace<VT_SLOTS> place;
        for (int unit = 0; unit < end - begin; ++unit, place.advance()) {
            if (unit % kTeams != teamOf()) {
                continue;
            }
            float c[4] = {};
            multiplyUnit<kDim>(ring, memory, x, 1, place, g * S::kGroups, (g + kHalfUnit) * S::kGroups, c);
            float* part = sums.part(unit);
            if (lane % 4 == 0) {
                part[g] = c[0];
                part[g + 8] = c[2];
            }
            sums.partWritten(unit);
        }
    }
};

/// The down products of one token's experts and their weighted sum. Row m of a unit is row m % kRowsTogether of expert
/// m / kRowsTogether, which is column m / kRowsTogether of x.
struct TokenDown {
    using S = Shape<kWidth>;
    /// Bytes of an expert's scales in a slot: whole 16-byte pieces around them.
    static constexpr int kSegment = ceilDiv(kRowsTogether * S::kGroups + 15, 16) * 16;
    static_assert(kChosen * kSegment <= S::kScaleBytes, "room for the scales");

    const Mxfp4GemvParams& p;
    Ring<VT_DOWN_SLOTS>& ring;
    Sums& sums;
    u32 memory;
    int begin = static_cast<int>(static_cast<i64>(kDim) * blockIdx.x / gridDim.x);
    int end = static_cast<int>(static_cast<i64>(kDim) * (blockIdx.x + 1) / gridDim.x);
    int id = 0; ///< of the lane's choice

    __device__ __forceinline__ static int choiceOf(int m) {
        return m / kRowsTogether < kChosen ? m / kRowsTogether : 0;
    }
    __device__ __forceinline__ static bool isUsed(int m) { return m < kChosen * kRowsTogether; }

    __device__ __forceinline__ void copy() {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const i64 rowExpert = __shfl_sync(kAllLanes, id, choiceOf(lane));
        RingPlace<VT_DOWN_SLOTS> place;
        for (int first = begin; first < end; first += kRowsTogether) {
            const int row = first + lane % kRowsTogether;
            UnitPiece piece;
            if (isUsed(lane) && row < end) {
                piece.row = p.downBlocks + (rowExpert * kDim + row) * (kWidth / 2);
            }
            if (lane < kChosen) {
                // The stack of scales is a multiple of 16 long: the pieces lie in it.
                const int rows = end - first < kRowsTogether ? end - first : kRowsTogether;
                const i64 at = (static_cast<i64>(id) * kDim + first) * S::kGroups;
                const i64 aligned = at / 16 * 16;
                piece.scales = p.downScales + aligned;
                piece.scaleBytes = static_cast<u32>((at + rows * S::kGroups + 15) / 16 * 16 - aligned);
                piece.scalesTo = static_cast<u32>(lane * kSegment);
            }
            copyUnit<kWidth>(ring, memory, place, piece);
        }
    }

    /// Units number, number + kFinishers, ... of the block.
    __device__ __forceinline__ void finish(int number, const float* factors) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int choice = choiceOf(lane);
        const i64 expert = __shfl_sync(kAllLanes, id, choice);
        const float share = p.weights[choice];
        Bias bias{};
        Residual residual{};
        const auto request = [&](int first) {
            const int row = first + lane % kRowsTogether;
            const int inside = row < end ? row : end - 1;
            if (p.downBias != nullptr) {
                bias = static_cast<const Bias*>(p.downBias)[expert * kDim + inside];
            }
            if (p.residual != nullptr) {
                residual = static_cast<const Residual*>(p.residual)[inside];
            }
        };
        int first = begin + number * kRowsTogether;
        request(first);
        rowsBarrier();
        for (; first < end; first += kFinishers * kRowsTogether, number += kFinishers) {
            const int row = first + lane % kRowsTogether;
            float value = sums.take(number) * factors[choice] + (p.downBias != nullptr ? toFloat(bias) : 0.0F);
            value = toFloat(fromFloat<bf16>(value)) * share;
            float sum = 0;
#pragma unroll
            for (int j = 0; j < kChosen; ++j) {
                sum += __shfl_sync(kAllLanes, value, j * kRowsTogether + lane % kRowsTogether);
            }
            if (row < end && lane < kRowsTogether) {
                using Out = StorageOf<VT_OUT_DTYPE>;
                static_cast<Out*>(p.out)[row] =
                    fromFloat<Out>(sum + (p.residual != nullptr ? toFloat(residual) : 0.0F));
            }
            request(first + kFinishers * kRowsTogether);
        }
    }

    __device__ __forceinline__ void multiply(u32 x) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int g = lane / 4;
        const int low = choiceOf(g);
        const int high = choiceOf(g + 8);
        const i64 lowId = __shfl_sync(kAllLanes, id, low);
        const i64 highId = __shfl_sync(kAllLanes, id, high);
        RingPlace<VT_DOWN_SLOTS> place;
        int unit = 0;
        for (int first = begin; first < end; first += kRowsTogether, ++unit, place.advance()) {
            if (unit % kTeams != teamOf()) {
                continue;
            }
            const int lowScales = low * kSegment + static_cast<int>((lowId * kDim + first) * S::kGroups % 16) +
                                  g % kRowsTogether * S::kGroups;
            const int highScales = high * kSegment + static_cast<int>((highId * kDim + first) * S::kGroups % 16) +
                                   (g + 8) % kRowsTogether * S::kGroups;
            float c[4] = {};
            multiplyUnit<kWidth>(ring, memory, x, kChosen, place, lowScales, highScales, c);
            // Of a row's eight sums the one of its own expert counts.
            float* part = sums.part(unit);
            if (lane % 4 == low / 2) {
                part[g] = low % 2 == 0 ? c[0] : c[1];
            }
            if (lane % 4 == high / 2) {
                part[g + 8] = high % 2 == 0 ? c[2] : c[3];
            }
            sums.partWritten(unit);
        }
    }
};

} // namespace experts

extern "C" __global__ void __launch_bounds__(experts::kTokenThreads, 1)
    mxfp4_gate_up(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    using Rows = SharedRows<kDim, kWarps * 32>;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ Ring<VT_SLOTS> ring;
    __shared__ Sums sums;
    __shared__ HalfRows::Scratch scratch;
    __shared__ float factors[1];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    TokenGateUp product{p, ring, sums, sharedAddress(memory)};
    if (threadIdx.x == 0) {
        sums.begin();
        scratch.begin();
    }
    beginRing(ring);
    pdl::wait();
    pdl::launchDependents();
    product.id = lane < kChosen ? loadFresh(p.ids + lane) : 0;
    if (warp == kWarps) {
        product.copy();
    } else if (warp > kWarps) {
        product.finish(warp - kWarps - 1, factors);
    } else {
        const u32 x = sharedAddress(memory) + VT_SLOTS * TokenGateUp::S::kSlotBytes;
        Rows::load(1, [&](int) { return static_cast<const bf16*>(p.x); }, HalfRows(scratch, factors), x);
        rowsBarrier();
        product.multiply(x);
    }
}

extern "C" __global__ void __launch_bounds__(experts::kTokenThreads, 1)
    mxfp4_down(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    using Rows = SharedRows<kWidth, kWarps * 32>;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ Ring<VT_DOWN_SLOTS> ring;
    __shared__ Sums sums;
    __shared__ HalfRows::Scratch scratch;
    __shared__ float factors[kChosen];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    TokenDown product{p, ring, sums, sharedAddress(memory)};
    if (threadIdx.x == 0) {
        sums.begin();
        scratch.begin();
    }
    beginRing(ring);
    pdl::launchDependents();
    product.id = lane < kChosen ? loadFresh(p.ids + lane) : 0;
    if (warp == kWarps) {
        product.copy();
        pdl::wait();
        return;
    }
    pdl::wait();
    if (warp > kWarps) {
        product.finish(warp - kWarps - 1, factors);
        return;
    }
    const u32 x = sharedAddress(memory) + VT_DOWN_SLOTS * TokenDown::S::kSlotBytes;
    const auto* active = static_cast<const bf16*>(p.active);
    Rows::load(
        kChosen, [&](int column) { return active + static_cast<i64>(column) * kWidth; }, HalfRows(scratch, factors), x);
    rowsBarrier();
    product.multiply(x);
}

} // namespace vt

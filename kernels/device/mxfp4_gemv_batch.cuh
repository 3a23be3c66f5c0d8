// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experts of up to 64 tokens; see expert_stream.cuh. Pairs (token, choice) are grouped by expert in items of up to
// 8 * VT_TILES, so that an expert's weights are read once for all tokens that chose it (of a crowded expert, once for
// every item). The blocks share the units of all items evenly. `mxfp4_gate_up_batch` writes activations,
// `mxfp4_down_batch` results of pairs, `mxfp4_combine` their weighted sums in order of choice. The ids are written by
// the kernel before mxfp4_gate_up_batch, which lets its successor start only after its own wait: so mxfp4_down_batch
// may read the ids, and bring weights, before it waits.

#include "device/abi/mxfp4_gemv.h"
#include "device/activation.cuh"
#include "device/expert_items.cuh"
#include "device/vector.cuh"

namespace vt {

using Mxfp4GemvParams = vitrine::kernels::abi::Mxfp4GemvParams;

namespace experts {

inline constexpr int kTiles = VT_TILES;
static_assert(kWidth % kUnitRows == 0 && kDim % kUnitRows == 0, "whole units");

using Items = ItemList<kTiles>;

/// Dynamic shared memory: the ring, the sums, the rows of x.
template <int kIn> struct Memory {
    static constexpr int kPartsAt = VT_SLOTS * Shape<kIn>::kSlotBytes;
    static constexpr int kRowsAt = kPartsAt + kTeams * 2 * Partials<kTiles>::kFloats * 4;
};

struct BatchShared {
    Ring<VT_SLOTS> ring;
    Items items;
    HalfRows::Scratch rows;
    float factors[2][kTiles * 8];
    int pairs[2][kTiles * 8];
    int pairsOfWarp[kWarps][kTiles * 8];
};

/// What the two products of a batch share. `kUp`: gate and up rows with the activation, else down rows.
template <bool kUp> class BatchProduct {
public:
    static constexpr int kIn = kUp ? kDim : kWidth;
    static constexpr int kUnitsOfItem = kUp ? kWidth / kHalfUnit : kDim / kUnitRows;
    using S = Shape<kIn>;

    __device__ __forceinline__ BatchProduct(const Mxfp4GemvParams& p, BatchShared& shared, u8* memory)
        : p_(p), shared_(shared), memory_(sharedAddress(memory)),
          parts_(reinterpret_cast<float*>(memory + Memory<kIn>::kPartsAt)), rows_(shared.rows, shared.factors[0]),
          pairs_(p.tokens * p.k) {
        const i64 units = static_cast<i64>(shared.items.count()) * kUnitsOfItem;
        begin_ = static_cast<int>(units * blockIdx.x / gridDim.x);
        end_ = static_cast<int>(units * (blockIdx.x + 1) / gridDim.x);
    }

    __device__ __forceinline__ void copy() {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        RingPlace<VT_SLOTS> place;
        int item = -1;
        i64 expert = 0;
        for (int at = begin_; at < end_; ++at) {
            if (at / kUnitsOfItem != item) {
                item = at / kUnitsOfItem;
                expert = shared_.items.expertOf(item);
            }
            const int unit = at % kUnitsOfItem;
            const i64 base = expert * (kUp ? 2 * kWidth : kDim);
            UnitPiece piece;
            if (lane < kUnitRows) {
                piece.row = (kUp ? p_.gateUpBlocks : p_.downBlocks) + (base + rowOf(unit, lane)) * (kIn / 2);
            } else if (lane < kUnitRows + 2) {
                const int half = lane - kUnitRows;
                piece.scales =
                    (kUp ? p_.gateUpScales : p_.downScales) + (base + rowOf(unit, half * kHalfUnit)) * S::kGroups;
                piece.scaleBytes = kHalfUnit * S::kGroups;
                piece.scalesTo = static_cast<u32>(half * kHalfUnit * S::kGroups);
            }
            copyUnit<kIn>(shared_.ring, memory_, place, piece);
        }
    }

    __device__ __forceinline__ void multiply() {
        const int team = teamOf();
        const int g = static_cast<int>(threadIdx.x) % 32 / 4;
        const int low = g * S::kGroups;
        const int high = (g + kHalfUnit) * S::kGroups;
        const u32 x = memory_ + Memory<kIn>::kRowsAt;
        float* parts = parts_ + team * 2 * Partials<kTiles>::kFloats;
        RingPlace<VT_SLOTS> place;
        int item = -1;
        int rows = 0;
        int buffer = 0; // of an item's facts: a late warp may still read the other
        i64 expert = 0;
        for (int at = begin_; at < end_; ++at, place.advance()) {
            if (at / kUnitsOfItem != item) {
                item = at / kUnitsOfItem;
                buffer ^= 1;
                expert = shared_.items.expertOf(item);
                rows = loadItem(x, item, static_cast<int>(expert), buffer);
            }
            if ((at - begin_) % kTeams != team) {
                continue;
            }
            const int turn = (at - begin_) / kTeams;
            const bool mine = turn % kTeamWarps == memberOf();
            Bias biases[2]{};
            if (mine) {
                requestBiases(expert, at % kUnitsOfItem, biases);
            }
            float c[kTiles][4] = {};
            multiplyUnit<kIn, kTiles>(shared_.ring, memory_, x, rows, place, low, high, c);
            float* part = parts + turn % 2 * Partials<kTiles>::kFloats;
            Partials<kTiles>::store(part, c);
            teamBarrier();
            if (mine) {
                finish(part, buffer, at % kUnitsOfItem, biases);
            }
        }
    }

private:
    __device__ __forceinline__ static i64 rowOf(int unit, int r) {
        return kUp ? gateUpRow(unit, r) : unit * kUnitRows + r;
    }

    /// Rows of x of an item into shared memory; returns how many.
    __device__ __forceinline__ int loadItem(u32 x, int item, int expert, int turn) {
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        using Rows = SharedRows<kIn, kWarps * 32>;
        int* own = shared_.pairsOfWarp[warp];
        __syncwarp();
        shared_.items.pairsOf(item, expert, pairs_, own);
        const int count = __popc(__ballot_sync(kAllLanes, lane < kTiles * 8 && own[lane % (kTiles * 8)] >= 0));
        if (warp == 0 && lane < kTiles * 8) {
            shared_.pairs[turn][lane] = own[lane];
        }
        const auto row = [&](int column) {
            const i64 pair = own[column];
            return kUp ? static_cast<const bf16*>(p_.x) + pair / p_.k * p_.xStride
                       : static_cast<const bf16*>(p_.active) + pair * kWidth;
        };
        rows_.meet(); // nobody multiplies by the rows before
        rows_.factorsTo(shared_.factors[turn]);
        Rows::load(count, row, rows_, x);
        rows_.meet();
        return count;
    }

    /// The two rows of a unit that a lane finishes: gate and up of a pair, or two rows of the product.
    __device__ __forceinline__ static int firstRow() {
        const int number = static_cast<int>(threadIdx.x) % 8;
        return kUp && VT_LAYOUT == 1 ? 2 * number : number;
    }
    __device__ __forceinline__ static int secondRow() {
        return kUp && VT_LAYOUT == 1 ? firstRow() + 1 : firstRow() + kHalfUnit;
    }
    __device__ __forceinline__ const Bias* biasOf() const {
        return static_cast<const Bias*>(kUp ? p_.gateUpBias : p_.downBias);
    }
    /// Asked for before the unit's products and used after them: the team does not wait for this warp.
    __device__ __forceinline__ void requestBiases(i64 expert, int unit, Bias (&biases)[2]) const {
        if (biasOf() != nullptr) {
            const Bias* bias = biasOf() + expert * (kUp ? 2 * kWidth : kDim);
            biases[0] = bias[rowOf(unit, firstRow())];
            biases[1] = bias[rowOf(unit, secondRow())];
        }
    }

    __device__ __forceinline__ void finish(const float* part, int turn, int unit, const Bias (&biases)[2]) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const float addFirst = biasOf() != nullptr ? toFloat(biases[0]) : 0.0F;
        const float addSecond = biasOf() != nullptr ? toFloat(biases[1]) : 0.0F;
        // Lanes take neighbouring rows of a pair, so that stores lie together.
#pragma unroll
        for (int i = 0; i < kTiles * 2; ++i) {
            const int column = i * 4 + lane / 8;
            const int pair = shared_.pairs[turn][column];
            if (pair < 0) {
                continue;
            }
            const int number = lane % 8;
            const float factor = shared_.factors[turn][column];
            const float low = Partials<kTiles>::sum(part, column / 8, firstRow(), column % 8) * factor + addFirst;
            const float high = Partials<kTiles>::sum(part, column / 8, secondRow(), column % 8) * factor + addSecond;
            if constexpr (kUp) {
                static_cast<bf16*>(p_.active)[static_cast<i64>(pair) * kWidth + unit * kHalfUnit + number] =
                    fromFloat<bf16>(gatedActivation<VT_ACTIVATION>(low, high, p_.alpha, p_.limit));
            } else {
                bf16* to = static_cast<bf16*>(p_.results) + static_cast<i64>(pair) * kDim + unit * kUnitRows + number;
                to[0] = fromFloat<bf16>(low);
                to[kHalfUnit] = fromFloat<bf16>(high);
            }
        }
    }

    const Mxfp4GemvParams& p_;
    BatchShared& shared_;
    u32 memory_;
    float* parts_;
    HalfRows rows_;
    int pairs_, begin_, end_;
};

} // namespace experts

extern "C" __global__ void __launch_bounds__(experts::kThreads, 1)
    mxfp4_gate_up_batch(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ BatchShared shared;
    if (threadIdx.x == 0) {
        shared.rows.begin();
    }
    beginRing(shared.ring);
    pdl::wait();
    pdl::launchDependents();
    shared.items.make(p.ids, p.tokens * p.k);
    BatchProduct<true> product(p, shared, memory);
    if (threadIdx.x / 32 == kWarps) {
        product.copy();
    } else {
        product.multiply();
    }
}

extern "C" __global__ void __launch_bounds__(experts::kThreads, 1)
    mxfp4_down_batch(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ BatchShared shared;
    if (threadIdx.x == 0) {
        shared.rows.begin();
    }
    beginRing(shared.ring);
    pdl::launchDependents();
    shared.items.make(p.ids, p.tokens * p.k);
    BatchProduct<false> product(p, shared, memory);
    if (threadIdx.x / 32 == kWarps) {
        product.copy();
        pdl::wait();
    } else {
        pdl::wait();
        product.multiply();
    }
}

/// Eight elements of a token for a thread: VT_DIM / 8 threads over the grid's x, tokens over y.
extern "C" __global__ void __launch_bounds__(128) mxfp4_combine(const __grid_constant__ Mxfp4GemvParams p) {
    const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * 8;
    const i64 token = blockIdx.y;
    pdl::wait();
    pdl::launchDependents();
    if (at >= VT_DIM) {
        return;
    }
    float sum[8] = {};
    for (int j = 0; j < p.k; ++j) {
        const float weight = p.weights[token * p.k + j];
        float values[8];
        loadPiece(static_cast<const bf16*>(p.results) + (token * p.k + j) * VT_DIM + at, values);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            sum[i] += weight * values[i];
        }
    }
    if (p.residual != nullptr) {
        float values[8];
        loadPiece(static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.residual) + token * p.residualStride + at, values);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            sum[i] += values[i];
        }
    }
    storePiece(sum, static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out) + token * p.outStride + at);
}

} // namespace vt

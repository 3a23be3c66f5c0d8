// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experts of up to 128 tokens; see expert_rows.cuh. Pairs (token, choice) are grouped by expert in items of up to
// 8 * VT_TILES, so that an expert's weights are read once for all tokens that chose it (of a crowded expert, once for
// every item). The blocks share the units of all items by what they cost. `mxfp4_gate_up_batch` writes activations,
// `mxfp4_down_batch` results of pairs, `mxfp4_combine` (mxfp4_combine.cuh) their weighted sums. The ids are written by
// the kernel before mxfp4_gate_up_batch, which lets its successor start only after its own wait: so mxfp4_down_batch
// may read the ids, and bring weights, before it waits.

#include "device/abi/mxfp4_gemv.h"
#include "device/experts/expert_items.cuh"
#include "device/experts/expert_rows.cuh"
#include "device/experts/mxfp4_combine.cuh"
#include "device/rowwise/activation.cuh"

namespace vt {

using Mxfp4GemvParams = vitrine::kernels::abi::Mxfp4GemvParams;

namespace experts {

static_assert(kWidth % kUnitRows == 0 && kDim % kUnitRows == 0, "whole units");

/// Units of mxfp4_down_batch that may go ahead of its wait: what waits for x waits for them as well.
inline constexpr u32 kAhead = 4;

using Items = ItemList<kTiles>;

struct BatchShared {
    Ring<VT_SLOTS> ring;
    BatchSums sums;
    Items items;
    int pairs[1 + kFinishers][Items::kPairs]; ///< of the item that the copying and each finishing warp is at

    /// All threads of the block.
    __device__ __forceinline__ void begin() {
        items.clear();
        if (threadIdx.x == 0) {
            sums.begin();
            ring.begin(kWarps * 32);
        }
        __syncthreads();
    }
};

/// What the two products of a batch share. `kUp`: gate and up rows with the activation, else down rows.
template <bool kUp> class BatchProduct {
public:
    static constexpr int kIn = kUp ? kDim : kWidth;
    static constexpr int kUnitsOfItem = kUp ? kWidth / kHalfUnit : kDim / kUnitRows;
    using S = Slot<kIn>;
    static_assert(VT_SLOTS >= ceilDiv(Items::kPairs, S::kXRows), "the rows of an item in the ring");

    /// `memory` is the dynamic shared memory: the ring, then the sums.
    __device__ __forceinline__ BatchProduct(const Mxfp4GemvParams& p, BatchShared& shared, u8* memory)
        : p_(p), shared_(shared), memory_(sharedAddress(memory)), parts_(memory_ + VT_SLOTS * S::kBytes),
          pairs_(p.tokens * p.k) {
        const int blocks = static_cast<int>(gridDim.x);
        begin_ = shared.items.beginOf(static_cast<int>(blockIdx.x), blocks, kUnitsOfItem);
        end_ = shared.items.beginOf(static_cast<int>(blockIdx.x) + 1, blocks, kUnitsOfItem);
    }

    /// The copying warp. Of the down product some weights go ahead of pdl::wait(), which it calls.
    __device__ __forceinline__ void copy() {
        u32 number = 0; // in the ring
        bool waits = !kUp;
        for (int at = begin_; at < end_;) {
            const int item = at / kUnitsOfItem;
            const int expert = shared_.items.expertOf(item);
            const int itemEnd = min((item + 1) * kUnitsOfItem, end_);
            const int count = shared_.items.pairsIn(item, expert);
            u32 next = number + static_cast<u32>(ceilDiv(count, S::kXRows));
            if (waits) {
                const u32 stop = min(next + kAhead, static_cast<u32>(VT_SLOTS));
                for (; at < itemEnd && next < stop; ++at, ++next) {
                    copyUnit(next, at % kUnitsOfItem, expert);
                }
                pdl::wait();
                waits = false;
            }
            copyRows(number, item, expert, count);
            for (; at < itemEnd; ++at, ++next) {
                copyUnit(next, at % kUnitsOfItem, expert);
            }
            number = next;
        }
        if (waits) {
            pdl::wait();
        }
    }

    __device__ __forceinline__ void multiply() {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const u32 words = memory_ + S::rowAt(lane % 16) + static_cast<u32>((memberOf() + lane / 16 * kWarps) * 16);
        const u32 scales = memory_ + static_cast<u32>(S::kScalesAt + lane / 4 * S::kGroups + memberOf());
        u32 parts = parts_ + static_cast<u32>(memberOf() * BatchSums::kWarpBytes + lane * 16);
        asm volatile("" : "+r"(parts)); // kept: the compiler would make it anew for every unit
        HeldRows<kIn> rows;
        UnitWords<kIn> unit;
        u32 number = 0; // in the ring
        int itemEnd = begin_;
        int count = 0;
        for (int at = begin_; at < end_; ++at) {
            if (at == itemEnd || at == begin_) {
                const int item = at / kUnitsOfItem;
                itemEnd = (item + 1) * kUnitsOfItem;
                count = shared_.items.pairsIn(item, shared_.items.expertOf(item));
                loadRows(rows, number, count);
                number += static_cast<u32>(ceilDiv(count, S::kXRows));
                sleepUntil(full(number), phaseOf(number));
                unit.load(words + slotAt(number));
            }
            const u32 done = static_cast<u32>(at - begin_);
            const bool more = at + 1 < end_ && at + 1 < itemEnd;
            const u32 ownScales = scales + slotAt(number);
            // Asked early, so that the answers are there when they are needed.
            bool isThere = false;
            bool isFree = false;
            const auto ask = [&] {
                isThere = barrier::test(full(number + 1), phaseOf(number + 1));
                isFree = shared_.sums.isFree(done);
            };
            const auto goOn = [&] {
                barrier::arrive(empty(number));
                ++number;
                if (more) {
                    if (!isThere) {
                        sleepUntil(full(number), phaseOf(number));
                    }
                    unit.load(words + slotAt(number));
                }
            };
            if (kTiles == 1 || count <= 8) {
                float c[1][4] = {};
                rows.multiply(unit, ownScales, c, ask, goOn);
                shared_.sums.put(parts, done, isFree, c);
            } else {
                float c[kTiles][4] = {};
                rows.multiply(unit, ownScales, c, ask, goOn);
                shared_.sums.put(parts, done, isFree, c);
            }
        }
    }

    /// A finishing warp: units number, number + kFinishers, ... of the block.
    __device__ __forceinline__ void finish(int number) {
        int* own = shared_.pairs[1 + number];
        int item = -1;
        int count = 0;
        i64 expert = 0;
        for (int at = begin_ + number; at < end_; at += kFinishers) {
            if (at / kUnitsOfItem != item) {
                item = at / kUnitsOfItem;
                expert = shared_.items.expertOf(item);
                count = shared_.items.pairsIn(item, static_cast<int>(expert));
                shared_.items.pairsOf(item, static_cast<int>(expert), pairs_, own);
            }
            if (kTiles == 1 || count <= 8) {
                finishUnit<1>(at, expert, own);
            } else {
                finishUnit<kTiles>(at, expert, own);
            }
        }
    }

private:
    __device__ __forceinline__ u32 full(u32 number) const {
        return sharedAddress(&shared_.ring.full[number % VT_SLOTS]);
    }
    __device__ __forceinline__ u32 empty(u32 number) const {
        return sharedAddress(&shared_.ring.empty[number % VT_SLOTS]);
    }
    __device__ __forceinline__ static u32 phaseOf(u32 number) { return number / VT_SLOTS % 2; }
    __device__ __forceinline__ static u32 slotAt(u32 number) { return number % VT_SLOTS * S::kBytes; }

    __device__ __forceinline__ static i64 rowOf(int unit, int r) {
        return kUp ? gateUpRow(unit, r) : unit * kUnitRows + r;
    }
    __device__ __forceinline__ const bf16* rowOfPair(i64 pair) const {
        return kUp ? static_cast<const bf16*>(p_.x) + pair / p_.k * p_.xStride
                   : static_cast<const bf16*>(p_.active) + pair * kWidth;
    }

    /// Waits until a slot is empty; `bytes` will fill it.
    __device__ __forceinline__ void expect(u32 number, int bytes) const {
        if (number >= VT_SLOTS) {
            sleepUntil(empty(number), phaseOf(number) ^ 1);
        }
        if (threadIdx.x % 32 == 0) {
            barrier::arriveExpect(full(number), static_cast<u32>(bytes));
        }
        __syncwarp();
    }
    __device__ __forceinline__ void copyUnit(u32 number, int unit, i64 expert) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const i64 base = expert * (kUp ? 2 * kWidth : kDim);
        const u32 to = memory_ + slotAt(number);
        expect(number, S::kRuns * S::kRunBytes + kUnitRows * S::kGroups);
        if (lane < S::kRuns) {
            const u8* from = (kUp ? p_.gateUpBlocks : p_.downBlocks) + (base + rowOf(unit, lane * S::kRun)) * (kIn / 2);
            copyBulkOnce(to + static_cast<u32>(lane * S::kRunStride), from, S::kRunBytes, full(number));
        } else if (lane < S::kRuns + 2) {
            const int half = (lane - S::kRuns) * kHalfUnit;
            const u8* from = (kUp ? p_.gateUpScales : p_.downScales) + (base + rowOf(unit, half)) * S::kGroups;
            copyBulkOnce(to + static_cast<u32>(S::kScalesAt + half * S::kGroups), from, kHalfUnit * S::kGroups,
                         full(number));
        }
    }
    /// The rows of x of an item.
    __device__ __forceinline__ void copyRows(u32 number, int item, int expert, int count) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        shared_.items.pairsOf(item, expert, pairs_, shared_.pairs[0]);
        for (int first = 0; first < count; first += S::kXRows, ++number) {
            const int rows = min(count - first, S::kXRows);
            expect(number, rows * kIn * 2);
            if (lane < rows) {
                copyBulk(memory_ + slotAt(number) + static_cast<u32>(lane * S::kXStride),
                         rowOfPair(shared_.pairs[0][first + lane]), kIn * 2, full(number));
            }
        }
    }
    /// The rows of x of an item from the ring into registers.
    __device__ __forceinline__ void loadRows(HeldRows<kIn>& rows, u32 number, int count) const {
        const int g = static_cast<int>(threadIdx.x) % 32 / 4;
        const u32 end = number + static_cast<u32>(ceilDiv(count, S::kXRows));
        for (u32 i = number; i < end; ++i) {
            sleepUntil(full(i), phaseOf(i));
        }
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            const int row = tile * 8 + g;
            if (tile * 8 < count) {
                const u32 slot = memory_ + slotAt(number + static_cast<u32>(row / S::kXRows));
                rows.load(tile, row < count ? slot + static_cast<u32>(row % S::kXRows * S::kXStride) : 0);
            }
        }
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            if (tile * 8 < count) {
                rows.convert(tile);
            }
        }
        for (u32 i = number; i < end; ++i) {
            barrier::arrive(empty(i));
        }
    }

    __device__ __forceinline__ const Bias* biasOf() const {
        return static_cast<const Bias*>(kUp ? p_.gateUpBias : p_.downBias);
    }
    /// Lane 4 g + t has rows g and g + 8 of the unit, for the pairs 2 t and 2 t + 1 of each tile.
    template <int kUsed> __device__ __forceinline__ void finishUnit(int at, i64 expert, const int* own) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int g = lane / 4;
        const int unit = at % kUnitsOfItem;
        float lowBias = 0;
        float highBias = 0;
        if (biasOf() != nullptr) {
            const Bias* bias = biasOf() + expert * (kUp ? 2 * kWidth : kDim);
            lowBias = toFloat(bias[rowOf(unit, g)]);
            highBias = toFloat(bias[rowOf(unit, g + kHalfUnit)]);
        }
        float c[kUsed][4] = {};
        shared_.sums.take(parts_ + static_cast<u32>(lane * 16), static_cast<u32>(at - begin_), c);
#pragma unroll
        for (int tile = 0; tile < kUsed; ++tile) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                store(unit, own[tile * 8 + lane % 4 * 2 + i], c[tile][i] + lowBias, c[tile][i + 2] + highBias);
            }
        }
    }
    /// Rows g and g + 8 of a unit for a pair, or for none (-1).
    __device__ __forceinline__ void store(int unit, int pair, float low, float high) const {
        const int g = static_cast<int>(threadIdx.x) % 32 / 4;
        if constexpr (kUp) {
            int number = g;
            if constexpr (VT_LAYOUT == 1) {
                // Even g have gates of features g / 2 and g / 2 + 4, odd ones the ups: an even one takes the first.
                const bool odd = g % 2 != 0;
                const float other = __shfl_xor_sync(kAllLanes, odd ? low : high, 4);
                low = odd ? other : low;
                high = odd ? high : other;
                number = g / 2 + (odd ? 4 : 0);
            }
            if (pair >= 0) {
                static_cast<bf16*>(p_.active)[static_cast<i64>(pair) * kWidth + unit * kHalfUnit + number] =
                    fromFloat<bf16>(gatedActivation<VT_ACTIVATION>(low, high, p_.alpha, p_.limit));
            }
        } else if (pair >= 0) {
            bf16* to = static_cast<bf16*>(p_.results) + static_cast<i64>(pair) * kDim + unit * kUnitRows + g;
            to[0] = fromFloat<bf16>(low);
            to[kHalfUnit] = fromFloat<bf16>(high);
        }
    }

    const Mxfp4GemvParams& p_;
    BatchShared& shared_;
    u32 memory_;
    u32 parts_;
    int pairs_, begin_, end_;
};

} // namespace experts

extern "C" __global__ void __launch_bounds__(experts::kThreads, 1)
    mxfp4_gate_up_batch(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ BatchShared shared;
    shared.begin();
    pdl::wait();
    pdl::launchDependents();
    shared.items.make(p.ids, p.tokens * p.k);
    BatchProduct<true> product(p, shared, memory);
    const int warp =
        __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 32, 0); // the same in all lanes, for the compiler
    if (warp < kWarps) {
        takeRegisters();
        product.multiply();
    } else {
        leaveRegisters();
        if (warp == kWarps) {
            product.copy();
        } else {
            product.finish(warp - kWarps - 1);
        }
    }
}

extern "C" __global__ void __launch_bounds__(experts::kThreads, 1)
    mxfp4_down_batch(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ BatchShared shared;
    shared.begin();
    pdl::launchDependents();
    shared.items.make(p.ids, p.tokens * p.k);
    BatchProduct<false> product(p, shared, memory);
    const int warp = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 32, 0);
    if (warp < kWarps) {
        takeRegisters();
        pdl::wait();
        product.multiply();
    } else {
        leaveRegisters();
        if (warp == kWarps) {
            product.copy(); // waits when it has brought what may go ahead
        } else {
            pdl::wait();
            product.finish(warp - kWarps - 1);
        }
    }
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Few rows of x times a large BF16 matrix, near the rate of memory (sm_90 and later).
//
// A block takes a stretch of the matrix's rows in units of eight. One warp brings them in slabs of columns into a ring in
// shared memory by bulk copies; it begins before pdl::wait(), so that weights arrive while the kernel before still
// ends. A block takes most of a multiprocessor's shared memory, so that there is one to each: two of the same kernel on
// one multiprocessor would leave another one idle. The rows of x lie in shared memory, normed if asked for. The other warps share the columns: x is the A operand of
// mma.sync, a unit the B operand; the sums of the warps meet in shared memory, and the warps take turns in finishing a
// unit. Columns go to lanes so that a lane's 16 bytes of a row are its operands of two products, for x as for weights.
// A row's sums do not depend on the number of rows of x.

#include "device/mma.cuh"
#include "device/pdl.cuh"
#include "device/shared_rows.cuh"

namespace vt::stream {

inline constexpr int kUnit = 8;
inline constexpr int kWarps = VT_WARPS; ///< that multiply; one more copies
inline constexpr int kThreads = (kWarps + 1) * 32;
inline constexpr int kTokens = VT_TOKENS; ///< rows of x at most: 8 or 16
inline constexpr int kDim = VT_DIM;
inline constexpr int kSlabs = ceilDiv(kDim, 4096);
inline constexpr int kSlab = ceilDiv(ceilDiv(kDim, kSlabs), 32) * 32; ///< columns
/// Whole rows lie as in the matrix, so that neighbours come in one copy; of slabs of rows each is padded, 64 bytes more
/// than a multiple of 128.
inline constexpr int kRowBytes = kSlabs == 1 ? kDim * 2 : (kSlab * 2 + 63) / 128 * 128 + 64;
inline constexpr int kSlotRows = VT_SLOT_ROWS; ///< weight rows of a slot of the ring
inline constexpr int kUnitSlots = kUnit / kSlotRows;
inline constexpr int kSlotBytes = (kSlotRows * kRowBytes + 127) / 128 * 128;
inline constexpr int kSlots = VT_SLOTS;
inline constexpr int kSteps = ceilDiv(kSlab / 32, kWarps); ///< of 32 columns, for a warp in a slab
static_assert(kSlots >= kUnitSlots, "a unit in the ring");
inline constexpr int kHalves = kTokens / 8;
inline constexpr int kPartials = kUnit * kTokens;
inline constexpr int kOutputs = kPartials / 32; ///< that a lane finishes
static_assert(kDim % 8 == 0 && (kTokens == 8 || kTokens == 16), "whole 16-byte pieces, one or two halves of a tile");

/// Dynamic shared memory: the ring, the sums, the rows of x.
inline constexpr int kSumsAt = kSlots * kSlotBytes;
inline constexpr int kRowsAt = kSumsAt + 2 * kWarps * kPartials * 4;
using Rows = SharedRows<kDim, kWarps * 32>;

struct Fixed {
    alignas(8) u64 full[kSlots];
    u64 empty[kSlots];
    float squares[kTokens][kWarps];
    float factors[kTokens]; ///< of the sums of a row of x
};

struct RingPlace {
    int slot = 0;
    u32 phase = 0;
    __device__ __forceinline__ void advance() {
        if (++slot == kSlots) {
            slot = 0;
            phase ^= 1;
        }
    }
};

constexpr __device__ __forceinline__ int slabColumns(int slab) {
    return kDim - slab * kSlab < kSlab ? kDim - slab * kSlab : kSlab;
}

__device__ __forceinline__ void beginRing(Fixed& fixed) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < kSlots; ++i) {
            barrier::init(sharedAddress(&fixed.full[i]), 1);
            barrier::init(sharedAddress(&fixed.empty[i]), kWarps);
        }
        barrier::fenceInit();
    }
    __syncthreads();
}

/// The copying warp. `rows.row(unit, r)` is the address of a row or null. `whenFull` is called once, when the ring is full
/// or everything is under way.
template <class Rows, class Then>
__device__ __forceinline__ void copyRows(const Rows& rows, Fixed& fixed, u32 ring, const Then& whenFull) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    RingPlace place;
    // The slots of a unit in order; a unit's slabs follow each other.
    const auto bring = [&](int index, int slab) {
        const u8* row =
            lane < kSlotRows ? rows.row(index / kUnitSlots, index % kUnitSlots * kSlotRows + lane) : nullptr;
        const u32 rowBytes = static_cast<u32>(slabColumns(slab)) * 2;
        const u32 there = __ballot_sync(kAllLanes, row != nullptr);
        u32 bytes = row == nullptr ? 0 : rowBytes;
        if constexpr (kSlabs == 1) {
            // The first of neighbouring rows copies them all.
            const u64 before = __shfl_up_sync(kAllLanes, reinterpret_cast<u64>(row), 1);
            const bool leads = row != nullptr && (lane == 0 || before + rowBytes != reinterpret_cast<u64>(row));
            const u32 leaders = __ballot_sync(kAllLanes, leads) | (~there & (there + 1));
            const u32 later = leaders >> 1 >> lane;
            bytes = leads ? rowBytes * static_cast<u32>(__ffs(static_cast<int>(later))) : 0;
        }
        if (row != nullptr) {
            row += slab * kSlab * 2;
        }
        const u32 full = sharedAddress(&fixed.full[place.slot]);
        if (lane == 0) {
            barrier::arriveExpect(full, rowBytes * static_cast<u32>(__popc(there)));
        }
        __syncwarp();
        if (bytes != 0) {
            copyBulkOnce(ring + static_cast<u32>(place.slot * kSlotBytes + lane * kRowBytes), row, bytes, full);
        }
        place.advance();
    };
    int copied = 0;
    for (int unit = 0; unit < rows.units(); ++unit) {
        for (int slab = 0; slab < kSlabs; ++slab) {
            for (int part = 0; part < kUnitSlots; ++part, ++copied) {
                if (copied == kSlots) {
                    whenFull();
                }
                if (copied >= kSlots) {
                    barrier::wait(sharedAddress(&fixed.empty[place.slot]), place.phase ^ 1);
                }
                bring(unit * kUnitSlots + part, slab);
            }
        }
    }
    if (copied <= kSlots) {
        whenFull();
    }
}

/// The products of one unit over this warp's columns: c[0], c[1]: token g, rows 2t and 2t + 1; c[2], c[3]: token g + 8.
/// `rows` rows of x lie at `x` (SharedRows).
__device__ __forceinline__ void multiplyUnit(Fixed& fixed, u32 ring, u32 x, int rows, RingPlace& place, float (&c)[4]) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    // Rows that are not there repeat the last one: nobody reads their sums.
    const u32 own = x + static_cast<u32>((g < rows ? g : rows - 1) * Rows::kStride + t * 16);
    const u32 ownHigh = x + static_cast<u32>((g + 8 < rows ? g + 8 : rows - 1) * Rows::kStride + t * 16);
    float second[4] = {};
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
        RingPlace first = place;
        u32 base = 0;
#pragma unroll
        for (int part = 0; part < kUnitSlots; ++part) {
            if (g / kSlotRows == part) {
                base = ring + static_cast<u32>(place.slot * kSlotBytes + g % kSlotRows * kRowBytes + t * 16);
            }
            barrier::wait(sharedAddress(&fixed.full[place.slot]), place.phase);
            place.advance();
        }
        constexpr int kColumns = slabColumns(kSlabs - 1) < kSlab ? slabColumns(kSlabs - 1) : kSlab;
        u32x4 weights[kSteps];
        u32x4 low[kSteps];
        u32x4 high[kSteps];
        // All loads go ahead of the products.
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const int local = warp + step * kWarps;
            const bool inside = ((step + 1) * kWarps * 32 <= kColumns || local * 32 < slabColumns(slab)) &&
                                (kDim % 32 == 0 || slab * kSlab + local * 32 + 8 * t < kDim);
            const u32 at = static_cast<u32>(slab * kSlab * 2 + local * 64);
            // Behind a row's end lies what nobody wrote.
            weights[step] = inside ? loadShared16(base + static_cast<u32>(local * 64)) : u32x4{0, 0, 0, 0};
            low[step] = inside ? loadShared16(own + at) : u32x4{0, 0, 0, 0};
            high[step] = kHalves == 2 && inside ? loadShared16(ownHigh + at) : u32x4{0, 0, 0, 0};
        }
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const u32 a[4] = {low[step].x, high[step].x, low[step].y, high[step].y};
            const u32 b[4] = {low[step].z, high[step].z, low[step].w, high[step].w};
            mma16816<bf16>(c, a, weights[step].x, weights[step].y);
            mma16816<bf16>(second, b, weights[step].z, weights[step].w);
        }
        __syncwarp();
        if (lane < kUnitSlots) {
            for (int i = 0; i < lane; ++i) {
                first.advance();
            }
            barrier::arrive(sharedAddress(&fixed.empty[first.slot]));
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        c[i] += second[i];
    }
}

/// The multiplying warps' loop. Warp w finishes units w, w + kWarps, ...: `work.request(unit)` asks for what the outputs of
/// this lane need (it may not use what it loads: a warp that waits there keeps all others waiting), long before
/// `work.finish(unit, i, token, row, sum)` takes the sum of all warps for output i of the lane. Both are called by whole
/// warps; `row` is the row of the unit. The first request is the caller's.
template <class Work> __device__ __forceinline__ void multiplyRows(Work& work, int rows, Fixed& fixed, u8* memory) {
    const u32 ring = sharedAddress(memory);
    float* sums = reinterpret_cast<float*>(memory + kSumsAt);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int units = work.units();
    RingPlace place;
    for (int unit = 0; unit < units; ++unit) {
        float c[4] = {};
        multiplyUnit(fixed, ring, ring + kRowsAt, rows, place, c);
        float* buffer = sums + unit % 2 * kWarps * kPartials;
        float* to = buffer + warp * kPartials + lane / 4 * kUnit + lane % 4 * 2;
        to[0] = c[0];
        to[1] = c[1];
        if constexpr (kHalves == 2) {
            to[8 * kUnit] = c[2];
            to[8 * kUnit + 1] = c[3];
        }
        namedBarrier(1, kWarps * 32);
        if (unit % kWarps == warp) {
#pragma unroll
            for (int i = 0; i < kOutputs; ++i) {
                float sum = 0;
#pragma unroll
                for (int other = 0; other < kWarps; ++other) {
                    sum += buffer[other * kPartials + i * 32 + lane];
                }
                const int token = (i * 32 + lane) / kUnit;
                work.finish(unit, i, token, lane % kUnit, sum * fixed.factors[token]);
            }
            work.request(unit + kWarps);
        }
    }
}

/// A whole kernel but for the beginning of the ring: copies on the copying warp; on the others loads x (norm of VT_FORM,
/// 3: none) and multiplies. `address(token)` is a row of x. `whenFull` is for the copying warp, once, after pdl::wait().
template <class Work, class Address, class Then>
__device__ __forceinline__ void run(Work& work, int rows, const Address& address, const void* normWeight, float eps,
                                    Fixed& fixed, u8* memory, const Then& whenFull) {
    pdl::launchDependents();
    if (threadIdx.x / 32 == kWarps) {
        copyRows(work, fixed, sharedAddress(memory), [&] {
            pdl::wait();
            whenFull();
        });
        return;
    }
    const u32 x = sharedAddress(memory) + kRowsAt;
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (VT_FORM == 3) {
        pdl::wait();
        work.request(thread / 32);
        Rows::load(rows, address, PlainRows(), x);
        if (thread < kTokens) {
            fixed.factors[thread] = 1;
        }
        namedBarrier(1, kWarps * 32);
    } else {
        using W = StorageOf<VT_NORM_DTYPE>;
        const ScaledRows<VT_FORM, kDim, kWarps * 32, W> scaled(static_cast<const W*>(normWeight), &fixed.squares[0][0]);
        pdl::wait();
        work.request(thread / 32);
        Rows::load(rows, address, scaled, x);
        namedBarrier(1, kWarps * 32);
        if (thread < rows) {
            float sum = 0;
            for (int i = 0; i < kWarps; ++i) {
                sum += fixed.squares[thread][i];
            }
            // The factor is the same for all columns of a row: the sums take it.
            fixed.factors[thread] = 1.0F / sqrtf(sum / static_cast<float>(kDim) + eps);
        }
    }
    multiplyRows(work, rows, fixed, memory);
}

} // namespace vt::stream

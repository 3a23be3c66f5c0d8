// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Few rows of x times a large BF16 matrix, near the rate of memory (sm_90 and later).
//
// A block takes a stretch of the matrix's rows in units of eight. One warp brings them into a ring in shared memory by
// bulk copies; it begins before pdl::wait(), so that weights arrive while the kernel before still ends. A block takes
// most of a multiprocessor's shared memory, so that there is one to each: two of the same kernel on one multiprocessor
// would leave another one idle. The rows of x lie in shared memory, times the weight of a norm if asked for. The
// multiplying warps share the columns: x is the A operand of mma.sync, a unit the B operand. Their sums go through a
// few buffers to the finishing warps, which add them and write: so nobody waits for a result, and what has arrived is
// multiplied at once. Columns go to lanes so that a lane's 16 bytes of a row are its operands of two products, for x
// as for weights. A row's sums do not depend on the number of rows of x.

#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/shared_rows.cuh"

namespace vt::stream {

inline constexpr int kUnit = 8;
inline constexpr int kWarps = 15;    ///< that multiply
inline constexpr int kFinishers = 4; ///< that finish units in turns; between them one warp copies
inline constexpr int kThreads = (kWarps + 1 + kFinishers) * 32;
inline constexpr int kTokens = VT_TOKENS; ///< rows of x at most: 1, 8 or 16
inline constexpr int kDim = VT_DIM;
inline constexpr int kSlabs = ceilDiv(kDim, 4096);
inline constexpr int kSlab = ceilDiv(ceilDiv(kDim, kSlabs), 64) * 64; ///< columns
/// Whole rows lie as in the matrix, so that neighbours come in one copy; of slabs of rows each is padded.
inline constexpr int kRowBytes = kSlabs == 1 ? kDim * 2 : kSlab * 2;
inline constexpr int kSlotRows = VT_SLOT_ROWS; ///< weight rows of a slot of the ring
inline constexpr int kUnitSlots = kUnit / kSlotRows;
inline constexpr int kSlotBytes = (kSlotRows * kRowBytes + 127) / 128 * 128;
inline constexpr int kSlots = VT_SLOTS;
inline constexpr int kBlocks = ceilDiv(kSlab / 32, 2 * kWarps); ///< of 64 columns, for a warp in a slab
static_assert(kSlots >= kUnitSlots, "a unit in the ring");
inline constexpr int kHalves = kTokens <= 8 ? 1 : 2;
inline constexpr int kPartials = kUnit * kTokens;       ///< sums of a unit
inline constexpr int kOutputs = ceilDiv(kPartials, 32); ///< that a lane finishes
inline constexpr int kBuffers = kTokens == 1 ? 8 : 4;
/// Lanes of a multiplying warp that write sums. Each arrives for itself: tools that look for races do not see that a
/// __syncwarp orders what the others wrote before one lane's arrival.
inline constexpr int kWriters = kTokens == 1 ? 4 : 32;
static_assert(kDim % 8 == 0 && (kTokens == 1 || kTokens == 8 || kTokens == 16), "whole 16-byte pieces, tiles of rows");

/// Dynamic shared memory: the ring, the sums, the rows of x.
inline constexpr int kSumsAt = kSlots * kSlotBytes;
inline constexpr int kRowsAt = kSumsAt + kBuffers * kWarps * kPartials * 4;
using Rows = SharedRows<kDim, kWarps * 32>;

struct Fixed {
    alignas(8) u64 full[kSlots];
    u64 empty[kSlots];
    u64 summed[kBuffers];
    u64 finished[kBuffers];
    float squares[kTokens][kWarps];
};

/// Where a ring of kCount is, and in which phase.
template <int kCount> struct Place {
    int slot = 0;
    u32 phase = 0;
    __device__ __forceinline__ void advance() {
        if (++slot == kCount) {
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
        for (int i = 0; i < kBuffers; ++i) {
            barrier::init(sharedAddress(&fixed.summed[i]), kWarps * kWriters);
            barrier::init(sharedAddress(&fixed.finished[i]), 32);
        }
        barrier::fenceInit();
    }
    __syncthreads();
}

/// The copying warp. `rows.row(unit, r)` is the address of a row or null.
template <class Source> __device__ __forceinline__ void copyRows(const Source& rows, Fixed& fixed, u32 ring) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Place<kSlots> place;
    int copied = 0;
    for (int unit = 0; unit < rows.units(); ++unit) {
        for (int slab = 0; slab < kSlabs; ++slab) {
            for (int part = 0; part < kUnitSlots; ++part, ++copied) {
                const u8* row = lane < kSlotRows ? rows.row(unit, part * kSlotRows + lane) : nullptr;
                const u32 rowBytes = static_cast<u32>(slabColumns(slab)) * 2;
                const u32 there = __ballot_sync(kAllLanes, row != nullptr);
                u32 bytes = row == nullptr ? 0 : rowBytes;
                if constexpr (kSlabs == 1) {
                    // The first of neighbouring rows copies them all.
                    const u64 before = __shfl_up_sync(kAllLanes, reinterpret_cast<u64>(row), 1);
                    const bool leads = row != nullptr && (lane == 0 || before + rowBytes != reinterpret_cast<u64>(row));
                    const u32 leaders = __ballot_sync(kAllLanes, leads) | (~there & (there + 1));
                    bytes = leads ? rowBytes * static_cast<u32>(__ffs(static_cast<int>(leaders >> 1 >> lane))) : 0;
                }
                const u32 full = sharedAddress(&fixed.full[place.slot]);
                if (copied >= kSlots) {
                    barrier::wait(sharedAddress(&fixed.empty[place.slot]), place.phase ^ 1);
                }
                if (lane == 0) {
                    barrier::arriveExpect(full, rowBytes * static_cast<u32>(__popc(there)));
                }
                __syncwarp();
                if (bytes != 0) {
                    copyBulkOnce(ring + static_cast<u32>(place.slot * kSlotBytes + lane * kRowBytes),
                                 row + slab * kSlab * 2, bytes, full);
                }
                place.advance();
            }
        }
    }
}

/// Column of a lane's 16 bytes in step `step` (0, 1) of its block `block` of 64 columns; the warps take blocks in
/// turns.
__device__ __forceinline__ int columnOf(int block, int step) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    return (warp + block * kWarps) * 64 + step * 32 + static_cast<int>(threadIdx.x) % 4 * 8;
}
/// Whether a slab has it; known to the compiler but for the last block.
__device__ __forceinline__ bool hasColumn(int slab, int block, int column) {
    return (block + 1) * kWarps * 64 <= slabColumns(kSlabs - 1) || column < slabColumns(slab);
}

/// A multiplying warp's columns of x (SharedRows at `x`): in registers, if they are few enough.
class Columns {
public:
    __device__ __forceinline__ Columns(u32 x, int rows) {
        const int g = static_cast<int>(threadIdx.x) % 32 / 4;
        // Rows that are not there repeat the last one: nobody reads their sums.
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
            own_[half] = x + static_cast<u32>((g + half * 8 < rows ? g + half * 8 : rows - 1) * Rows::kStride);
        }
        if constexpr (kHeld) {
#pragma unroll
            for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
                for (int step = 0; step < 2; ++step) {
                    held_[block][step] = load(0, block, step, 0);
                }
            }
        }
    }
    __device__ __forceinline__ u32x4 at(int slab, int block, int step, int half) const {
        if constexpr (kHeld) {
            return held_[block][step];
        } else {
            return load(slab, block, step, half);
        }
    }

private:
    static constexpr bool kHeld = kSlabs == 1 && kHalves == 1 && kBlocks <= 4;

    __device__ __forceinline__ u32x4 load(int slab, int block, int step, int half) const {
        const int column = columnOf(block, step);
        return hasColumn(slab, block, column) ? loadShared16(own_[half] + static_cast<u32>((slab * kSlab + column) * 2))
                                              : u32x4{0, 0, 0, 0};
    }

    u32 own_[kHalves];
    u32x4 held_[kHeld ? kBlocks : 1][2];
};

/// The products of one unit over this warp's columns: c[0], c[1]: token g, rows 2t and 2t + 1; c[2], c[3]: token g + 8.
__device__ __forceinline__ void multiplyUnit(Fixed& fixed, u32 ring, const Columns& x, Place<kSlots>& place,
                                             float (&c)[4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    // Rows of odd number take the two steps of a block in the other order: their 16 bytes lie in other banks then.
    const bool odd = g % 2 != 0;
    float second[4] = {};
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
        Place<kSlots> first = place;
        u32 base = 0;
#pragma unroll
        for (int part = 0; part < kUnitSlots; ++part) {
            if (g / kSlotRows == part) {
                base = ring + static_cast<u32>(place.slot * kSlotBytes + g % kSlotRows * kRowBytes);
            }
            barrier::wait(sharedAddress(&fixed.full[place.slot]), place.phase);
            place.advance();
        }
        u32x4 weights[kBlocks][2];
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                // The memory past a row's end was never written.
                const int column = columnOf(block, odd ? 1 - step : step);
                weights[block][step] = hasColumn(slab, block, column)
                                           ? loadShared16(base + static_cast<u32>(column * 2))
                                           : u32x4{0, 0, 0, 0};
            }
        }
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                const u32x4& w0 = weights[block][step];
                const u32x4& w1 = weights[block][1 - step];
                const u32x4 w{odd ? w1.x : w0.x, odd ? w1.y : w0.y, odd ? w1.z : w0.z, odd ? w1.w : w0.w};
                const u32x4 low = x.at(slab, block, step, 0);
                const u32x4 high = kHalves == 2 ? x.at(slab, block, step, kHalves - 1) : u32x4{0, 0, 0, 0};
                const u32 a[4] = {low.x, high.x, low.y, high.y};
                const u32 b[4] = {low.z, high.z, low.w, high.w};
                mma16816<bf16>(c, a, w.x, w.y);
                mma16816<bf16>(second, b, w.z, w.w);
            }
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

/// A multiplying warp: `units` units.
__device__ __forceinline__ void multiplyRows(int units, int rows, Fixed& fixed, u8* memory) {
    const u32 ring = sharedAddress(memory);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Columns x(ring + kRowsAt, rows);
    Place<kSlots> place;
    Place<kBuffers> buffer;
    for (int unit = 0; unit < units; ++unit) {
        float c[4] = {};
        multiplyUnit(fixed, ring, x, place, c);
        if (unit >= kBuffers) {
            barrier::wait(sharedAddress(&fixed.finished[buffer.slot]), buffer.phase ^ 1);
        }
        float* sums = reinterpret_cast<float*>(memory + kSumsAt) + (buffer.slot * kWarps + warp) * kPartials;
        float* to = sums + lane / 4 * kUnit + lane % 4 * 2;
        if (lane < kWriters) {
            to[0] = c[0];
            to[1] = c[1];
            if constexpr (kHalves == 2) {
                to[8 * kUnit] = c[2];
                to[8 * kUnit + 1] = c[3];
            }
            barrier::arrive(sharedAddress(&fixed.summed[buffer.slot]));
        }
        buffer.advance();
    }
}

/// A finishing warp: units first, first + kFinishers, ... `work.request(unit)` asks for what the outputs of this lane
/// need, `work.finish(unit, i, token, row, sum)` takes the sum for output i of the lane; `row` is the row of the unit.
/// Both are called by whole warps.
template <class Work>
__device__ __forceinline__ void finishRows(Work& work, int first, int rows, float eps, Fixed& fixed, const u8* memory) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto* sums = reinterpret_cast<const float*>(memory + kSumsAt);
    float factors[kOutputs];
    work.request(first);
    for (int unit = first; unit < work.units(); unit += kFinishers) {
        const int slot = unit % kBuffers;
        barrier::wait(sharedAddress(&fixed.summed[slot]), static_cast<u32>(unit / kBuffers % 2));
        if (unit == first) {
#pragma unroll
            for (int i = 0; i < kOutputs; ++i) {
                // The factor of a norm is the same for all columns of a row: the sums take it.
                factors[i] = 1;
                const int token = (i * 32 + lane) / kUnit;
                if (VT_FORM != 3 && token < rows) {
                    float squares = 0;
                    for (int warp = 0; warp < kWarps; ++warp) {
                        squares += fixed.squares[token][warp];
                    }
                    factors[i] = 1.0F / sqrtf(squares / static_cast<float>(kDim) + eps);
                }
            }
        }
        float values[kOutputs];
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
            values[i] = 0;
#pragma unroll
            for (int warp = 0; warp < kWarps; ++warp) {
                values[i] += sums[(slot * kWarps + warp) * kPartials + (i * 32 + lane) % kPartials];
            }
        }
        barrier::arrive(sharedAddress(&fixed.finished[slot]));
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) {
            work.finish(unit, i, (i * 32 + lane) / kUnit, lane % kUnit, values[i] * factors[i]);
        }
        work.request(unit + kFinishers);
    }
}

/// A whole kernel. x gets the norm of VT_FORM (3: none); `address(token)` is a row of x; `memory` is the dynamic shared
/// memory.
template <class Work, class Address>
__device__ __forceinline__ void run(Work work, int rows, const Address& address, const void* normWeight, float eps,
                                    u8* memory) {
    __shared__ Fixed fixed;
    beginRing(fixed);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    pdl::launchDependents();
    if (warp == kWarps) {
        copyRows(work, fixed, sharedAddress(memory));
        pdl::wait();
        return;
    }
    if (warp > kWarps) {
        pdl::wait();
        finishRows(work, warp - kWarps - 1, rows, eps, fixed, memory);
        return;
    }
    const u32 x = sharedAddress(memory) + kRowsAt;
    if constexpr (VT_FORM == 3) {
        pdl::wait();
        Rows::load(rows, address, PlainRows(), x);
    } else {
        using W = StorageOf<VT_NORM_DTYPE>;
        const ScaledRows<VT_FORM, kDim, kWarps * 32, W> scaled(static_cast<const W*>(normWeight), &fixed.squares[0][0]);
        pdl::wait();
        Rows::load(rows, address, scaled, x);
    }
    namedBarrier(1, kWarps * 32);
    multiplyRows(work.units(), rows, fixed, memory);
}

} // namespace vt::stream

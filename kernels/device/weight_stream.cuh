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
/// Of a row in the ring: 64 more than a multiple of 128, so that lanes of two rows lie in different banks.
inline constexpr int kRowBytes = (kSlab * 2 + 63) / 128 * 128 + 64;
inline constexpr int kSlotRows = VT_SLOT_ROWS; ///< weight rows of a slot of the ring
inline constexpr int kUnitSlots = kUnit / kSlotRows;
inline constexpr int kSlotBytes = kSlotRows * kRowBytes;
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

/// The copying warp. `rows.row(unit, r)` is the address of a row or null.
template <class Source> __device__ __forceinline__ void copyRows(const Source& rows, Fixed& fixed, u32 ring) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    RingPlace place;
    // The slots of a unit in order; a unit's slabs follow each other.
    const auto bring = [&](int index, int slab) {
        const u8* row =
            lane < kSlotRows ? rows.row(index / kUnitSlots, index % kUnitSlots * kSlotRows + lane) : nullptr;
        const u32 bytes = static_cast<u32>(slabColumns(slab)) * 2;
        const u32 full = sharedAddress(&fixed.full[place.slot]);
        const int count = __popc(__ballot_sync(kAllLanes, row != nullptr));
        if (lane == 0) {
            barrier::arriveExpect(full, bytes * static_cast<u32>(count));
        }
        __syncwarp();
        if (row != nullptr) {
            copyBulkOnce(ring + static_cast<u32>(place.slot * kSlotBytes + lane * kRowBytes), row + slab * kSlab * 2,
                         bytes, full);
        }
        place.advance();
    };
    int copied = 0;
    for (int unit = 0; unit < rows.units(); ++unit) {
        for (int slab = 0; slab < kSlabs; ++slab) {
            for (int part = 0; part < kUnitSlots; ++part, ++copied) {
                if (copied >= kSlots) {
                    barrier::wait(sharedAddress(&fixed.empty[place.slot]), place.phase ^ 1);
                }
                bring(unit * kUnitSlots + part, slab);
            }
        }
    }
}

/// A multiplying warp's columns of x (SharedRows at `x`): in registers, if they are few enough.
class Columns {
public:
    __device__ __forceinline__ Columns(u32 x, int rows) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int g = lane / 4;
        // Rows that are not there repeat the last one: nobody reads their sums.
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
            const int row = g + half * 8 < rows ? g + half * 8 : rows - 1;
            own_[half] = x + static_cast<u32>(row * Rows::kStride + lane % 4 * 16);
        }
        if constexpr (kHeld) {
            forSteps([&](int slab, int step, int half) { held_[slab][step][half] = load(slab, step, half); });
        }
    }
    __device__ __forceinline__ u32x4 at(int slab, int step, int half) const {
        if constexpr (kHeld) {
            return held_[slab][step][half];
        } else {
            return load(slab, step, half);
        }
    }
    /// Whether this lane has columns in a step; known to the compiler for all but the last of a row.
    __device__ __forceinline__ static bool inside(int slab, int step) {
        constexpr int kFewest = slabColumns(kSlabs - 1);
        const int local = static_cast<int>(threadIdx.x) / 32 + step * kWarps;
        return ((step + 1) * kWarps * 32 <= kFewest || local * 32 < slabColumns(slab)) &&
               (kDim % 32 == 0 || slab * kSlab + local * 32 + 8 * (static_cast<int>(threadIdx.x) % 4) < kDim);
    }

private:
    static constexpr bool kHeld = kSlabs * kSteps * kHalves <= 12;

    template <class Body> __device__ __forceinline__ static void forSteps(const Body& body) {
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab) {
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
#pragma unroll
                for (int half = 0; half < kHalves; ++half) {
                    body(slab, step, half);
                }
            }
        }
    }
    __device__ __forceinline__ u32x4 load(int slab, int step, int half) const {
        const int local = static_cast<int>(threadIdx.x) / 32 + step * kWarps;
        const u32 at = static_cast<u32>(slab * kSlab * 2 + local * 64);
        return inside(slab, step) ? loadShared16(own_[half] + at) : u32x4{0, 0, 0, 0};
    }

    u32 own_[kHalves];
    u32x4 held_[kHeld ? kSlabs : 1][kHeld ? kSteps : 1][kHeld ? kHalves : 1];
};

/// The products of one unit over this warp's columns: c[0], c[1]: token g, rows 2t and 2t + 1; c[2], c[3]: token g + 8.
__device__ __forceinline__ void multiplyUnit(Fixed& fixed, u32 ring, const Columns& x, RingPlace& place,
                                             float (&c)[4]) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    const int t = lane % 4;
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
        u32x4 weights[kSteps];
        // All loads go ahead of the products.
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            // Behind a row's end lies what nobody wrote.
            weights[step] = Columns::inside(slab, step)
                                ? loadShared16(base + static_cast<u32>((warp + step * kWarps) * 64))
                                : u32x4{0, 0, 0, 0};
        }
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const u32x4 low = x.at(slab, step, 0);
            const u32x4 high = kHalves == 2 ? x.at(slab, step, kHalves - 1) : u32x4{0, 0, 0, 0};
            const u32 a[4] = {low.x, high.x, low.y, high.y};
            const u32 b[4] = {low.z, high.z, low.w, high.w};
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
    const Columns x(ring + kRowsAt, rows);
    RingPlace place;
    for (int unit = 0; unit < units; ++unit) {
        float c[4] = {};
        multiplyUnit(fixed, ring, x, place, c);
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
/// 3: none) and multiplies. `address(token)` is a row of x.
template <class Work, class Address>
__device__ __forceinline__ void run(Work& work, int rows, const Address& address, const void* normWeight, float eps,
                                    Fixed& fixed, u8* memory) {
    pdl::launchDependents();
    if (threadIdx.x / 32 == kWarps) {
        copyRows(work, fixed, sharedAddress(memory));
        pdl::wait();
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

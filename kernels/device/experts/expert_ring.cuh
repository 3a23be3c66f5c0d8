// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the products of MXFP4 experts share (sm_90 and later): units of sixteen weight rows that one warp brings into a
// ring in shared memory by bulk copies. Weights enter as halves, 2^-14 of their value; a row of x is multiplied by the
// power of two that brings its largest value (of those that a warp multiplies) to 2^14 .. 2^15, so that a half holds
// every bf16 down to 2^-32 of it. Both factors are powers of two and are undone at the end. A row's sums do not depend
// on the other rows.

#include "device/formats/mxfp4_half.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/shared_rows.cuh"

namespace vt::experts {

inline constexpr int kUnitRows = 16;
inline constexpr int kHalfUnit = kUnitRows / 2;
inline constexpr int kDim = VT_DIM;     ///< of a token
inline constexpr int kWidth = VT_WIDTH; ///< of an expert

using Bias = StorageOf<VT_BIAS_DTYPE>;

/// Row r of a gate-up unit: pairs of gate and up rows as they lie (layout 1), or eight gate rows, then eight up rows.
__device__ __forceinline__ i64 gateUpRow(int unit, int r) {
    return VT_LAYOUT == 1 ? unit * kUnitRows + r : unit * kHalfUnit + r % kHalfUnit + r / kHalfUnit * kWidth;
}

template <int kSlots> struct Ring {
    alignas(8) u64 full[kSlots];
    u64 empty[kSlots];

    /// By one thread, before the block's barrier: how many arrivals make a slot empty.
    __device__ __forceinline__ void begin(u32 readers) {
        for (int i = 0; i < kSlots; ++i) {
            barrier::init(sharedAddress(&full[i]), 1);
            barrier::init(sharedAddress(&empty[i]), readers);
        }
        barrier::fenceInit();
    }
};

template <int kSlots> struct RingPlace {
    int slot = 0;
    u32 phase = 0;
    int used = 0;
    __device__ __forceinline__ void advance() {
        ++used;
        if (++slot == kSlots) {
            slot = 0;
            phase ^= 1;
        }
    }
};

/// The power of two that brings `most`, the largest of some magnitudes, to 2^14 .. 2^15. Powers stay normal floats
/// whatever x holds.
__device__ __forceinline__ int powerFor(float most) {
    const int power = 14 + 127 - static_cast<int>(__float_as_uint(most) >> 23);
    return power > 126 ? 126 : power;
}
__device__ __forceinline__ float powerOfTwo(int power) {
    return __uint_as_float(static_cast<u32>(power + 127) << 23);
}
/// What undoes the power and the weights' own.
__device__ __forceinline__ float undoing(int power) {
    return powerOfTwo(kMxfp4HalfExponent - power);
}

__device__ __forceinline__ u32 loadWord(u32 address) {
    u32 out;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out) : "r"(address));
    return out;
}
__device__ __forceinline__ u32 loadByte(u32 address) {
    u32 out;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(out) : "r"(address));
    return out;
}

} // namespace vt::experts

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// NF4 as floats, to the last bit as kernels/formats/nf4_format.cpp makes them.

#include "device/abi/packed_weight.h"
#include "device/lib/types.cuh"

namespace vt {

/// In global memory, where lanes may read different values at once.
__device__ const float kNf4Values[16] = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

/// The scale of a group, counted over the whole matrix. Product and sum are rounded one after the other, as on the CPU.
__device__ __forceinline__ float nf4Scale(const vitrine::kernels::abi::PackedWeight& weight, i64 group) {
    if (weight.scaleScales == nullptr) {
        return static_cast<const float*>(weight.scales)[group];
    }
    const u8 code = static_cast<const u8*>(weight.scales)[group];
    return __fadd_rn(__fmul_rn(weight.scaleMap[code], weight.scaleScales[group / 256]), weight.scaleOffset);
}

__device__ __forceinline__ float nf4Element(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    const i64 element = row * weight.in + column;
    const u8 pair = weight.data[element / 2];
    return kNf4Values[column % 2 == 0 ? pair >> 4 : pair & 15U] * nf4Scale(weight, element / 64);
}

} // namespace vt

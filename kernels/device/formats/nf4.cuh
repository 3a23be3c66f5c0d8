// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// NF4 as floats, to the last bit as kernels/formats/nf4_format.cpp makes them.

#include "device/abi/nf4_scales.h"
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

/// The scale of a group. Product and sum are rounded one after the other, as on the CPU.
__device__ __forceinline__ float nf4Scale(const vitrine::kernels::abi::Nf4Scales& scales, i64 group) {
    if (scales.floats != nullptr) {
        return scales.floats[group];
    }
    return __fadd_rn(__fmul_rn(scales.map[scales.codes[group]], scales.codeScales[group / 256]), scales.offset);
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which scale belongs to an element, and that scale as float32, where scales are plain floats.

#include "device/abi/dtype.h"
#include "device/abi/packed_weight.h"
#include "device/lib/types.cuh"

namespace vt {

/// The index of the scale, and of the zero. `row` counts the rows of all matrices.
__device__ __forceinline__ i64 scaleIndex(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    const i64 matrix = row / weight.out;
    const i64 inside = row - matrix * weight.out;
    const int rowsOfScales = (weight.out + weight.rowGroup - 1) / weight.rowGroup;
    const int group = weight.order != nullptr ? weight.order[matrix * weight.in + column] : column / weight.group;
    return (matrix * rowsOfScales + inside / weight.rowGroup) * weight.groups + group;
}

__device__ __forceinline__ float plainScale(const vitrine::kernels::abi::PackedWeight& weight, i64 index) {
    if (weight.scaleType == VT_F32) {
        return static_cast<const float*>(weight.scales)[index];
    }
    return weight.scaleType == VT_BF16 ? toFloat(static_cast<const StorageOf<VT_BF16>*>(weight.scales)[index])
                                       : toFloat(static_cast<const StorageOf<VT_F16>*>(weight.scales)[index]);
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FP8 weights as floats, to the last bit as kernels/formats/fp8_format.cpp makes them.

#include "device/formats/scales.cuh"

namespace vt {

/// E4M3 as float32; 0x7F and 0xFF are no numbers.
__device__ __forceinline__ float e4m3Value(u32 byte) {
    const u32 magnitude = byte & 0x7FU;
    const float finite = __uint_as_float(magnitude << 20) * 0x1.0p120F;
    return __uint_as_float((byte & 0x80U) << 24 | (magnitude == 0x7FU ? 0x7FC00000U : __float_as_uint(finite)));
}

__device__ __forceinline__ float fp8Element(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    return e4m3Value(weight.data[row * weight.rowBytes + column]) * plainScale(weight, scaleIndex(weight, row, column));
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Integers of 4 or 8 bits as floats, to the last bit as kernels/formats/integer_format.cpp makes them.

#include "device/formats/scales.cuh"

namespace vt {

template <int kBits>
__device__ __forceinline__ float integerElement(const vitrine::kernels::abi::PackedWeight& weight, i64 row,
                                                int column) {
    const u8 byte = weight.data[row * weight.rowBytes + column / (8 / kBits)];
    const int code = kBits == 8 ? byte : column % 2 == 0 ? byte & 15 : byte >> 4;
    const i64 at = scaleIndex(weight, row, column);
    const int zero = weight.zeros == nullptr ? 1 << (kBits - 1) : weight.zeros[at];
    return static_cast<float>(code - zero) * plainScale(weight, at);
}

} // namespace vt

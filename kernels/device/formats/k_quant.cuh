// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Blocks of GGUF files as floats, to the last bit as kernels/formats/k_quant_format.cpp makes them: its header draws
// the blocks.

#include "device/abi/dtype.h"
#include "device/abi/packed_weight.h"
#include "device/lib/types.cuh"

namespace vt {

/// Blocks begin at even addresses, and so do their halves.
__device__ __forceinline__ float kQuantHalf(const u8* bytes) {
    return toFloat(*reinterpret_cast<const StorageOf<VT_F16>*>(bytes));
}

/// A scale (minimum = 0) or a minimum (1) of 6 bits.
__device__ __forceinline__ int q4kScale(const u8* packed, int stretch, int minimum) {
    const int at = stretch % 4 + 4 * minimum;
    return stretch < 4 ? packed[at] & 63 : (packed[8 + stretch % 4] >> (4 * minimum) & 15) | (packed[at] >> 2 & 48);
}

__device__ __forceinline__ float q4kElement(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    const u8* const block = weight.data + row * weight.rowBytes + column / 256 * 144;
    const int stretch = column % 256 / 32;
    const float scale = __fmul_rn(kQuantHalf(block), static_cast<float>(q4kScale(block + 4, stretch, 0)));
    const float minimum = __fmul_rn(kQuantHalf(block + 2), static_cast<float>(q4kScale(block + 4, stretch, 1)));
    const int code = block[16 + stretch / 2 * 32 + column % 32] >> stretch % 2 * 4 & 15;
    return __fsub_rn(__fmul_rn(scale, static_cast<float>(code)), minimum);
}

__device__ __forceinline__ float q6kElement(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    const u8* const block = weight.data + row * weight.rowBytes + column / 256 * 210;
    const int stretch = column % 256 / 32;
    const int low = block[stretch / 4 * 64 + stretch % 2 * 32 + column % 32] >> (stretch % 4 < 2 ? 0 : 4) & 15;
    const int high = block[128 + stretch / 4 * 32 + column % 32] >> stretch % 4 * 2 & 3;
    const int step = static_cast<signed char>(block[192 + column % 256 / 16]);
    return __fmul_rn(__fmul_rn(kQuantHalf(block + 208), static_cast<float>(step)),
                     static_cast<float>((low | high << 4) - 32));
}

__device__ __forceinline__ float q5kElement(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    const u8* const block = weight.data + row * weight.rowBytes + column / 256 * 176;
    const int stretch = column % 256 / 32;
    const float scale = __fmul_rn(kQuantHalf(block), static_cast<float>(q4kScale(block + 4, stretch, 0)));
    const float minimum = __fmul_rn(kQuantHalf(block + 2), static_cast<float>(q4kScale(block + 4, stretch, 1)));
    const int low = block[48 + stretch / 2 * 32 + column % 32] >> stretch % 2 * 4 & 15;
    const int fifth = block[16 + column % 32] >> stretch & 1;
    return __fsub_rn(__fmul_rn(scale, static_cast<float>(low | fifth << 4)), minimum);
}

/// A block of 32 with a scale and an offset. `FifthBytes` is 4 where 32 bits above the nibbles stand before them, or 0.
template <int FifthBytes>
__device__ __forceinline__ float offsetElement(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    const u8* const block = weight.data + row * weight.rowBytes + column / 32 * (20 + FifthBytes);
    const int place = column % 32;
    int code = block[4 + FifthBytes + place % 16] >> (place < 16 ? 0 : 4) & 15;
    if constexpr (FifthBytes > 0) {
        code |= (block[4 + place / 8] >> place % 8 & 1) << 4;
    }
    return __fadd_rn(__fmul_rn(kQuantHalf(block), static_cast<float>(code)), kQuantHalf(block + 2));
}

__device__ __forceinline__ float q41Element(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    return offsetElement<0>(weight, row, column);
}

__device__ __forceinline__ float q51Element(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
    return offsetElement<4>(weight, row, column);
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The values that become a packed weight: those of a dense or packed one, with an adapter in it or without. Products
// and sums of the adapter are not fused, so that the CPU has the same bits. Products of two BF16 or F16 values are
// exact in float32: fused or not, their sums have the same bits.

#include "device/abi/pack_weight.h"
#include "device/abi/weight_format.h"
#include "device/formats/fp8.cuh"
#include "device/formats/mxfp4.cuh"
#include "device/lib/vector.cuh"

namespace vt {

using PackPart = vitrine::kernels::abi::PackWeightPart;

/// The work items of a thread block. With an adapter they are neighbours, which read the same A: it stays in the
/// first-level cache. Otherwise blocks go over the weights side by side.
struct Items {
    i64 first, end, step;

    __device__ __forceinline__ explicit Items(i64 count)
        : first(VT_A_DTYPE == 0 ? blockIdx.x : count * blockIdx.x / gridDim.x),
          end(VT_A_DTYPE == 0 ? count : count * (blockIdx.x + 1) / gridDim.x), step(VT_A_DTYPE == 0 ? gridDim.x : 1) {}
};

/// The number of the part that has a work item. Items of a thread block rise, so `part` is where it was.
__device__ __forceinline__ int partOf(const vitrine::kernels::abi::PackWeightParams& p, i64 item, int part) {
    while (part + 1 < p.count && item >= p.parts[part + 1].first) {
        ++part;
    }
    return part;
}

/// Where the scale of an FP8 weight lies whose row counts the rows of all matrices.
__device__ __forceinline__ i64 blockScale(const PackPart& p, i64 row, int column) {
    const i64 matrix = row / p.rows;
    const i64 line = matrix * ((p.rows + p.xRowGroup - 1) / p.xRowGroup) + (row - matrix * p.rows) / p.xRowGroup;
    return line * ((p.in + p.xGroup - 1) / p.xGroup) + column / p.xGroup;
}

/// Eight neighbouring values before the adapter. `piece` counts pieces of all rows.
__device__ __forceinline__ void loadBase(const PackPart& p, i64 piece, float (&values)[8]) {
#if VT_X_FORMAT == VT_FORMAT_DENSE
    loadPiece(static_cast<const StorageOf<VT_X_DTYPE>*>(p.x) + piece * 8, values);
#elif VT_X_FORMAT == VT_FORMAT_FP8
    const u32x2 bytes = static_cast<const u32x2*>(p.x)[piece];
    const i64 row = piece / (p.in / 8);
    const int column = static_cast<int>(piece - row * (p.in / 8)) * 8;
    const float scale = static_cast<const float*>(p.xScales)[blockScale(p, row, column)];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        values[i] = __fmul_rn(e4m3Value((i < 4 ? bytes.x : bytes.y) >> i % 4 * 8 & 0xFFU), scale);
    }
#else
    const u32 word = static_cast<const u32*>(p.x)[piece];
    const i64 at = piece / (p.xGroup / 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u32 code = word >> (4 * i) & 15U;
#if VT_X_FORMAT == VT_FORMAT_MXFP4
        values[i] = __fmul_rn(mxfp4Value(code), mxfp4Scale(static_cast<const u8*>(p.xScales)[at]));
#else
        const float scale = toFloat(static_cast<const StorageOf<VT_X_SCALE>*>(p.xScales)[at]);
        values[i] = __fmul_rn(static_cast<float>(static_cast<int>(code) - 8), scale);
#endif
    }
#endif
}

/// One value before the adapter. `row` counts the rows of all matrices.
__device__ __forceinline__ float baseElement(const PackPart& p, i64 row, int column) {
    const i64 at = row * p.in + column;
#if VT_X_FORMAT == VT_FORMAT_DENSE
    return toFloat(static_cast<const StorageOf<VT_X_DTYPE>*>(p.x)[at]);
#elif VT_X_FORMAT == VT_FORMAT_FP8
    const float scale = static_cast<const float*>(p.xScales)[blockScale(p, row, column)];
    return __fmul_rn(e4m3Value(static_cast<const u8*>(p.x)[at]), scale);
#else
    float values[8];
    loadBase(p, at / 8, values);
    float value = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        value = i == column % 8 ? values[i] : value; // an index that is not known would put them into local memory
    }
    return value;
#endif
}

#if VT_A_DTYPE != 0
using AdapterValue = StorageOf<VT_A_DTYPE>;

/// One value, or two or eight with accesses of 4 to 16 bytes, as they are stored.
template <int kCount>
__device__ __forceinline__ void loadValues(const AdapterValue* from, AdapterValue (&out)[kCount]) {
    constexpr int kBytes = kCount * static_cast<int>(sizeof(AdapterValue));
    if constexpr (kCount == 1) {
        out[0] = *from;
    } else if constexpr (kBytes == 4) {
        *reinterpret_cast<u32*>(out) = *reinterpret_cast<const u32*>(from);
    } else if constexpr (kBytes == 8) {
        *reinterpret_cast<u32x2*>(out) = *reinterpret_cast<const u32x2*>(from);
    } else {
#pragma unroll
        for (int i = 0; i < kBytes / 16; ++i) {
            reinterpret_cast<u32x4*>(out)[i] = reinterpret_cast<const u32x4*>(from)[i];
        }
    }
}

/// Number i of values in registers: half a word of BF16 becomes a float in one instruction.
template <int kCount> __device__ __forceinline__ float valueAt(const AdapterValue (&values)[kCount], int i) {
    if constexpr (VT_A_DTYPE == VT_BF16 && kCount > 1) {
        const u32 word = reinterpret_cast<const u32*>(values)[i / 2];
        return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xFFFF0000U);
    }
    return toFloat(values[i]);
}
#endif

#if VT_A_DTYPE != 0
__device__ __forceinline__ float addProduct(float sum, float a, float b) {
    return VT_A_DTYPE == VT_F32 ? __fadd_rn(sum, __fmul_rn(a, b)) : __fmaf_rn(a, b, sum);
}
#endif

/// Pieces of B A of several rows of one matrix. Rows count those of all matrices. With VT_RANK_PIECES the rank is a
/// multiple of 8, and two values of a row of B are read at once: more leave no registers for three thread blocks.
template <int kRows>
__device__ __forceinline__ void multiplyAdapter(const PackPart& p, i64 matrix, const i64 (&rows)[kRows], int column,
                                                float (&sums)[kRows][8]) {
#if VT_A_DTYPE != 0
    constexpr int kRanks = VT_RANK_PIECES != 0 ? 2 : 1;
    const AdapterValue* a = static_cast<const AdapterValue*>(p.a) + matrix * p.rank * p.in + column;
    const AdapterValue* b[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
        b[k] = static_cast<const AdapterValue*>(p.b) + rows[k] * p.rank;
    }
    for (int first = 0; first < p.rank; first += kRanks) {
        alignas(16) AdapterValue factors[kRows][kRanks];
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            loadValues(b[k] + first, factors[k]);
        }
#pragma unroll
        for (int r = 0; r < kRanks; ++r, a += p.in) {
            alignas(16) AdapterValue line[8];
            loadValues(a, line);
#pragma unroll
            for (int k = 0; k < kRows; ++k) {
                const float factor = valueAt(factors[k], r);
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    sums[k][i] = addProduct(sums[k][i], factor, valueAt(line, i));
                }
            }
        }
    }
#endif
}

/// A piece of the weight with what multiplyAdapter() made of its row.
__device__ __forceinline__ void addBase(const PackPart& p, i64 piece, float (&values)[8]) {
    float base[8];
    loadBase(p, piece, base);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        values[i] = VT_A_DTYPE == 0 ? base[i] : __fadd_rn(base[i], __fmul_rn(p.scale, values[i]));
    }
}

/// One value with the adapter. `row` counts the rows of all matrices.
__device__ __forceinline__ float mergedElement(const PackPart& p, i64 row, int column) {
    const float before = baseElement(p, row, column);
#if VT_A_DTYPE == 0
    return before;
#else
    const AdapterValue* a = static_cast<const AdapterValue*>(p.a) + row / p.rows * p.rank * p.in + column;
    const AdapterValue* const b = static_cast<const AdapterValue*>(p.b) + row * p.rank;
    float sum = 0;
    for (int r = 0; r < p.rank; ++r, a += p.in) {
        sum = addProduct(sum, toFloat(b[r]), toFloat(*a));
    }
    return __fadd_rn(before, __fmul_rn(p.scale, sum));
#endif
}

/// To the type T, unless the values are as they were stored in it.
template <class T, int kRows> __device__ __forceinline__ void roundAll(float (&values)[kRows][8]) {
    if constexpr (sizeof(T) < 4 && (VT_A_DTYPE != 0 || VT_X_FORMAT != VT_FORMAT_DENSE || VT_X_DTYPE != VT_TYPE)) {
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
#pragma unroll
            for (float& value : values[k]) {
                value = rounded<T>(value);
            }
        }
    }
}

} // namespace vt

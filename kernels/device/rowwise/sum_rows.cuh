// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sums over rows: parts of neighbouring rows, then the parts. A block takes 32 pieces of VT_VECTOR columns; its eight
// warps take turns at the rows, and their sums are added in their order.

#include "device/abi/sum_rows.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

inline constexpr int kSumWarps = 8;

/// Rows [first, last) of x; the first warp gets the sums of the columns from `column`, which its lanes share.
template <class T>
__device__ __forceinline__ void sumColumns(const T* x, i64 stride, i64 first, i64 last, i64 column, i64 n,
                                           float (&sums)[VT_VECTOR]) {
    __shared__ float slots[kSumWarps][32][VT_VECTOR];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (column < n) {
#pragma unroll 4
        for (i64 row = first + warp; row < last; row += kSumWarps) {
            float values[VT_VECTOR];
            loadPiece(x + row * stride + column, values);
#pragma unroll
            for (int i = 0; i < VT_VECTOR; ++i) {
                sums[i] += values[i];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < VT_VECTOR; ++i) {
        slots[warp][lane][i] = sums[i];
    }
    __syncthreads();
    if (warp == 0) {
        for (int other = 1; other < kSumWarps; ++other) {
#pragma unroll
            for (int i = 0; i < VT_VECTOR; ++i) {
                sums[i] += slots[other][lane][i];
            }
        }
    }
}

/// The first column of this thread.
__device__ __forceinline__ i64 sumColumn() {
    return (static_cast<i64>(blockIdx.x) * 32 + threadIdx.x % 32) * VT_VECTOR;
}

extern "C" __global__ void __launch_bounds__(32 * kSumWarps)
    sum_rows_parts(const __grid_constant__ vitrine::kernels::abi::SumRowsParams p) {
    pdl::wait();
    pdl::launchDependents();
    const i64 part = blockIdx.y;
    const i64 column = sumColumn();
    const i64 end = (part + 1) * p.partRows < p.rows ? (part + 1) * p.partRows : p.rows;
    float sums[VT_VECTOR] = {};
    sumColumns(static_cast<const StorageOf<VT_X_DTYPE>*>(p.x), p.xStride, part * p.partRows, end, column, p.n, sums);
    if (threadIdx.x < 32 && column < p.n) {
        storePiece(sums, p.partials + part * p.n + column);
    }
}

extern "C" __global__ void __launch_bounds__(32 * kSumWarps)
    sum_rows(const __grid_constant__ vitrine::kernels::abi::SumRowsParams p) {
    pdl::wait();
    pdl::launchDependents();
    const i64 column = sumColumn();
    float sums[VT_VECTOR] = {};
    if (p.partials != nullptr) {
        sumColumns(p.partials, p.n, 0, p.parts, column, p.n, sums);
    } else {
        sumColumns(static_cast<const StorageOf<VT_X_DTYPE>*>(p.x), p.xStride, 0, p.rows, column, p.n, sums);
    }
    if (threadIdx.x < 32 && column < p.n) {
        float before[VT_VECTOR] = {};
        if (p.accumulate != 0) {
            loadPiece(p.out + column, before);
        }
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            sums[i] += before[i];
        }
        storePiece(sums, p.out + column);
    }
}

} // namespace vt

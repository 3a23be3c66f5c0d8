// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Sums of the rows of each expert, and dots of rows with their expert's vector. The order of the sums does not change.

#include "device/abi/grouped_matmul.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using Row = StorageOf<VT_X_DTYPE>;
using Vector = StorageOf<VT_VECTOR_DTYPE>;

constexpr int kWarps = 8;

} // namespace

/// 32 columns of an expert a block: each warp takes every eighth row, and the warps' sums are added in order.
extern "C" __global__ void __launch_bounds__(kWarps * 32)
    grouped_sums(const __grid_constant__ abi::GroupedRowsParams p) {
    __shared__ float sums[kWarps][32];
    pdl::wait();
    pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int expert = static_cast<int>(blockIdx.y);
    const int column = static_cast<int>(blockIdx.x) * 32 + lane;
    float sum = 0;
    if (column < p.width) {
        for (int row = p.starts[expert] + warp; row < p.starts[expert + 1]; row += kWarps) {
            const float value = toFloat(static_cast<const Row*>(p.rows)[row * p.rowStride + column]);
            sum = fmaf(p.weights == nullptr ? 1.0F : p.weights[row], value, sum);
        }
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < p.width) {
        float total = 0;
        for (int i = 0; i < kWarps; ++i) {
            total += sums[i][lane];
        }
        p.result[static_cast<i64>(expert) * p.width + column] += total;
    }
}

/// A warp a row.
extern "C" __global__ void __launch_bounds__(kWarps * 32)
    grouped_dots(const __grid_constant__ abi::GroupedRowsParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
    if (row >= p.count) {
        return;
    }
    int low = 0; // the expert: the last start that is not after the row
    int high = p.experts;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (p.starts[middle] <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const Row* x = static_cast<const Row*>(p.rows) + row * p.rowStride;
    const Vector* vector = static_cast<const Vector*>(p.vectors) + low * p.vectorStride;
    float sum = 0;
    for (int i = lane; i < p.width; i += 32) {
        sum = fmaf(toFloat(x[i]), toFloat(vector[i]), sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    if (lane == 0) {
        p.result[row] += sum;
    }
}

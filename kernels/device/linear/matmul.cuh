// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Dense products in float32 arithmetic: 64 rows times 64 outputs a block. For dtypes that cuBLASLt does not multiply
// (float32 activations with BF16 or packed weights); BF16 at many rows goes to cuBLASLt.

#include "device/abi/matmul.h"
#include "device/formats/packed_element.cuh"
#include "device/lib/pdl.cuh"
#include "device/linear/float_tiles.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using X = StorageOf<VT_X_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

constexpr int kRows = 64;

__device__ __forceinline__ float weightAt(const abi::MatmulParams& p, i64 out, int in) {
#if VT_W_FORMAT != VT_FORMAT_DENSE
    return VT_TRANSPOSED ? packedElement(p.packed, in, static_cast<int>(out)) : packedElement(p.packed, out, in);
#else
    const auto* dense = static_cast<const StorageOf<VT_W_DTYPE>*>(p.dense);
    return toFloat(dense[VT_TRANSPOSED ? in * p.weightStride + out : out * p.weightStride + in]);
#endif
}

} // namespace

extern "C" __global__ void __launch_bounds__(float_tiles::kThreads)
    matmul(const __grid_constant__ abi::MatmulParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int thread = static_cast<int>(threadIdx.x);
    const int firstOut = static_cast<int>(blockIdx.x) * float_tiles::kOutputs;
    const int firstRow = static_cast<int>(blockIdx.y) * kRows;
    float sums[kRows / 16][4] = {};
    float_tiles::multiply<kRows, VT_TRANSPOSED != 0>(
        p.in,
        [&](int i, int k) {
            const int row = firstRow + thread / 16 + 16 * i;
            return row < p.rows ? toFloat(static_cast<const X*>(p.x)[row * p.xStride + k]) : 0;
        },
        [&](int out, int k) { return firstOut + out < p.out ? weightAt(p, firstOut + out, k) : 0; }, sums);
    for (int i = 0; i < 16; ++i) {
        const i64 row = firstRow + thread / 16 * 4 + i / 4;
        const int out = firstOut + thread % 16 * 4 + i % 4;
        if (row >= p.rows || out >= p.out) {
            continue;
        }
        float value = p.scale * sums[i / 4][i % 4];
#if VT_BIAS_DTYPE
        value += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[out]);
#endif
#if VT_RESIDUAL_DTYPE
        value += toFloat(static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.residual)[row * p.residualStride + out]);
#endif
        static_cast<Result*>(p.result)[row * p.resultStride + out] = fromFloat<Result>(value);
    }
}

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Dense products in float32 arithmetic: 64 rows times 64 outputs a block, 4 x 4 sums a thread. For dtypes that cuBLASLt does
// not multiply (float32 activations with BF16 or MXFP4 weights); BF16 at many rows goes to cuBLASLt.

#include "device/abi/matmul.h"
#include "device/mxfp4.cuh"
#include "device/pdl.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using X = StorageOf<VT_X_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;
#if VT_BIAS_DTYPE
using Bias = StorageOf<VT_BIAS_DTYPE>;
#endif

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 256;

__device__ __forceinline__ float weightAt(const abi::MatmulParams& p, i64 out, i64 in) {
#if VT_W_DTYPE == VT_U8
    const u8 pair = static_cast<const u8*>(p.blocks)[out * (p.in / 2) + in / 2];
    return mxfp4Value(in % 2 == 0 ? pair & 15U : pair >> 4) *
           mxfp4Scale(static_cast<const u8*>(p.scales)[out * (p.in / 32) + in / 32]);
#else
    const auto* dense = static_cast<const StorageOf<VT_W_DTYPE>*>(p.dense);
    return toFloat(dense[VT_TRANSPOSED ? in * p.weightStride + out : out * p.weightStride + in]);
#endif
}

} // namespace

extern "C" __global__ void __launch_bounds__(kThreads) matmul(const __grid_constant__ abi::MatmulParams p) {
    __shared__ float xs[kDepth][kTile + 4];
    __shared__ float ws[kDepth][kTile + 4];
    pdl::wait();
    pdl::launchDependents();
    const int thread = static_cast<int>(threadIdx.x);
    const int firstOut = static_cast<int>(blockIdx.x) * kTile;
    const int firstRow = static_cast<int>(blockIdx.y) * kTile;
    const int rowAt = thread / 16 * 4;
    const int outAt = thread % 16 * 4;
    float sums[4][4] = {};
    for (int begin = 0; begin < p.in; begin += kDepth) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) { // neighbours in memory go to neighbouring threads
            const int k = thread % 16;
            const int row = thread / 16 + 16 * i;
            const bool inside = firstRow + row < p.rows && begin + k < p.in;
            xs[k][row] = inside ? toFloat(static_cast<const X*>(p.x)[(firstRow + row) * p.xStride + begin + k]) : 0;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int k = VT_TRANSPOSED ? thread / 64 + 4 * i : thread % 16;
            const int out = VT_TRANSPOSED ? thread % 64 : thread / 16 + 16 * i;
            ws[k][out] = firstOut + out < p.out && begin + k < p.in ? weightAt(p, firstOut + out, begin + k) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
#pragma unroll
            for (int row = 0; row < 4; ++row) {
#pragma unroll
                for (int out = 0; out < 4; ++out) {
                    sums[row][out] = fmaf(xs[k][rowAt + row], ws[k][outAt + out], sums[row][out]);
                }
            }
        }
    }
    for (int i = 0; i < 16; ++i) {
        const i64 row = firstRow + rowAt + i / 4;
        const int out = firstOut + outAt + i % 4;
        if (row >= p.rows || out >= p.out) {
            continue;
        }
        float value = sums[i / 4][i % 4];
#if VT_BIAS_DTYPE
        value += toFloat(static_cast<const Bias*>(p.bias)[out]);
#endif
#if VT_RESIDUAL_DTYPE
        value += toFloat(static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.residual)[row * p.residualStride + out]);
#endif
        static_cast<Result*>(p.result)[row * p.resultStride + out] = fromFloat<Result>(value);
    }
}

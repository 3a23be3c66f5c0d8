// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Grouped expert products in float32 arithmetic: 128 rows of a tile times 64 outputs a block, 8 x 4 sums a thread. For
// float32 activations, transposed weights and shapes that the tensor-core kernels leave out.

#include "device/abi/expert_matmul.h"
#include "device/abi/expert_sort.h"
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

constexpr int kRows = abi::kExpertTile;
constexpr int kOutputs = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 256;

__device__ __forceinline__ float weightAt(const abi::ExpertMatmulParams& p, i64 expert, int out, int in) {
#if VT_W_DTYPE == VT_U8
    const i64 row = expert * p.out + out;
    const u8 pair = static_cast<const u8*>(p.blocks)[row * (p.in / 2) + in / 2];
    return mxfp4Value(in % 2 == 0 ? pair & 15U : pair >> 4) *
           mxfp4Scale(static_cast<const u8*>(p.scales)[row * (p.in / 32) + in / 32]);
#else
    const auto* dense = static_cast<const StorageOf<VT_W_DTYPE>*>(p.dense) + expert * p.out * p.in;
    return toFloat(VT_TRANSPOSED ? dense[static_cast<i64>(in) * p.out + out]
                                 : dense[static_cast<i64>(out) * p.in + in]);
#endif
}

} // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    expert_matmul(const __grid_constant__ abi::ExpertMatmulParams p) {
    __shared__ float xs[kDepth][kRows + 4];
    __shared__ float ws[kDepth][kOutputs + 4];
    pdl::wait();
    pdl::launchDependents();
    const int tile = static_cast<int>(blockIdx.y);
    if (tile >= *p.tileCount) {
        return;
    }
    const int thread = static_cast<int>(threadIdx.x);
    const int expert = p.tiles[2 * tile];
    const int* slots = p.slots + tile * kRows;
    const int firstOut = static_cast<int>(blockIdx.x) * kOutputs;
    const int loadedPair = slots[thread / 2];
    const X* xRow = static_cast<const X*>(p.x) + (loadedPair < 0 ? 0 : loadedPair / p.pairsPerRow) * p.xStride;
    const int rowAt = thread / 16 * 8;
    const int outAt = thread % 16 * 4;
    float sums[8][4] = {};
    for (int begin = 0; begin < p.in; begin += kDepth) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int k = thread % 2 * 8 + i;
            xs[k][thread / 2] = loadedPair >= 0 && begin + k < p.in ? toFloat(xRow[begin + k]) : 0;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) { // neighbours in memory go to neighbouring threads
            const int k = VT_TRANSPOSED ? thread / 16 : thread % 4 * 4 + i;
            const int out = VT_TRANSPOSED ? thread % 16 + 16 * i : thread / 4;
            ws[k][out] =
                firstOut + out < p.out && begin + k < p.in ? weightAt(p, expert, firstOut + out, begin + k) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
#pragma unroll
            for (int row = 0; row < 8; ++row) {
#pragma unroll
                for (int out = 0; out < 4; ++out) {
                    sums[row][out] = fmaf(xs[k][rowAt + row], ws[k][outAt + out], sums[row][out]);
                }
            }
        }
    }
    for (int row = 0; row < 8; ++row) {
        const i64 pair = slots[rowAt + row];
        for (int i = 0; i < 4; ++i) {
            const int out = firstOut + outAt + i;
            if (pair < 0 || out >= p.out) {
                continue;
            }
            float value = sums[row][i];
#if VT_BIAS_DTYPE
            value += toFloat(static_cast<const Bias*>(p.bias)[expert * p.biasStride + out]);
#endif
            static_cast<Result*>(p.result)[pair * p.resultStride + out] = fromFloat<Result>(value);
        }
    }
}

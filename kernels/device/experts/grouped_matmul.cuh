// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Products of experts over sorted rows in float32 arithmetic: 64 rows times 64 outputs a block. For what the
// tensor-core form leaves out.

#include "device/abi/grouped_matmul.h"
#include "device/formats/packed_element.cuh"
#include "device/lib/pdl.cuh"
#include "device/linear/float_tiles.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using X = StorageOf<VT_X_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

constexpr int kRows = 64;

__device__ __forceinline__ float weightAt(const abi::GroupedMatmulParams& p, i64 expert, int out, int in) {
#if VT_W_FORMAT != VT_FORMAT_DENSE
    return VT_CONTRACTED ? packedElement(p.packed, expert * p.in + in, out)
                         : packedElement(p.packed, expert * p.out + out, in);
#else
    const auto* dense = static_cast<const StorageOf<VT_W_DTYPE>*>(p.dense) + expert * p.out * p.in;
    return toFloat(VT_CONTRACTED ? dense[static_cast<i64>(in) * p.out + out]
                                 : dense[static_cast<i64>(out) * p.in + in]);
#endif
}

} // namespace

extern "C" __global__ void __launch_bounds__(float_tiles::kThreads)
    grouped_matmul(const __grid_constant__ abi::GroupedMatmulParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int thread = static_cast<int>(threadIdx.x);
    int tile = static_cast<int>(blockIdx.x);
    int expert = 0;
    for (; expert < p.experts; ++expert) {
        const int tiles = ceilDiv(p.starts[expert + 1] - p.starts[expert], kRows);
        if (tile < tiles) {
            break;
        }
        tile -= tiles;
    }
    if (expert == p.experts) {
        return;
    }
    const int firstRow = p.starts[expert] + tile * kRows;
    const int end = p.starts[expert + 1];
    const int firstOut = static_cast<int>(blockIdx.y) * float_tiles::kOutputs;
    float sums[kRows / 16][4] = {};
    float_tiles::multiply<kRows, VT_CONTRACTED != 0>(
        p.in,
        [&](int i, int k) {
            const i64 row = firstRow + thread / 16 + 16 * i;
            return row < end ? toFloat(static_cast<const X*>(p.x)[row * p.xStride + k]) : 0;
        },
        [&](int out, int k) { return firstOut + out < p.out ? weightAt(p, expert, firstOut + out, k) : 0; }, sums);
    for (int i = 0; i < 16; ++i) {
        const i64 row = firstRow + thread / 16 * 4 + i / 4;
        const int out = firstOut + thread % 16 * 4 + i % 4;
        if (row >= end || out >= p.out) {
            continue;
        }
        float value = p.scale * sums[i / 4][i % 4];
#if VT_BIAS_DTYPE
        value += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[expert * p.biasStride + out]);
#endif
        Result& result = static_cast<Result*>(p.result)[row * p.resultStride + out];
        result = fromFloat<Result>(VT_ACCUMULATE ? toFloat(result) + value : value);
    }
}

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Grouped expert products in float32 arithmetic: 128 rows of a tile times 64 outputs a block. For float32 activations,
// transposed weights and shapes that the tensor-core kernels leave out.

#include "device/abi/expert_matmul.h"
#include "device/abi/expert_sort.h"
#include "device/formats/packed_element.cuh"
#include "device/lib/pdl.cuh"
#include "device/linear/float_tiles.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using X = StorageOf<VT_X_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

constexpr int kRows = abi::kExpertTile;
constexpr int kThreadRows = kRows / 16;

__device__ __forceinline__ float weightAt(const abi::ExpertMatmulParams& p, i64 expert, int out, int in) {
#if VT_W_FORMAT != VT_FORMAT_DENSE
    return packedElement(p.packed, expert * p.out + out, in);
#else
    const auto* dense = static_cast<const StorageOf<VT_W_DTYPE>*>(p.dense) + expert * p.out * p.in;
    return toFloat(VT_TRANSPOSED ? dense[static_cast<i64>(in) * p.out + out]
                                 : dense[static_cast<i64>(out) * p.in + in]);
#endif
}

} // namespace

extern "C" __global__ void __launch_bounds__(float_tiles::kThreads)
    expert_matmul(const __grid_constant__ abi::ExpertMatmulParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int tile = static_cast<int>(blockIdx.y);
    if (tile >= *p.tileCount) {
        return;
    }
    const int thread = static_cast<int>(threadIdx.x);
    const int expert = p.tiles[2 * tile];
    const int* slots = p.slots + tile * kRows;
    const int firstOut = static_cast<int>(blockIdx.x) * float_tiles::kOutputs;
    int rows[kThreadRows]; // of x, -1 after the tile's last
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
        const int pair = slots[thread / 16 + 16 * i];
        rows[i] = pair < 0 ? -1 : pair / p.pairsPerRow;
    }
    float sums[kThreadRows][4] = {};
    float_tiles::multiply<kRows, VT_TRANSPOSED != 0>(
        p.in,
        [&](int i, int k) { return rows[i] < 0 ? 0 : toFloat(static_cast<const X*>(p.x)[rows[i] * p.xStride + k]); },
        [&](int out, int k) { return firstOut + out < p.out ? weightAt(p, expert, firstOut + out, k) : 0; }, sums);
    for (int i = 0; i < kThreadRows * 4; ++i) {
        const i64 pair = slots[thread / 16 * kThreadRows + i / 4];
        const int out = firstOut + thread % 16 * 4 + i % 4;
        if (pair < 0 || out >= p.out) {
            continue;
        }
        float value = sums[i / 4][i % 4];
#if VT_BIAS_DTYPE
        value += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[expert * p.biasStride + out]);
#endif
        static_cast<Result*>(p.result)[pair * p.resultStride + out] = fromFloat<Result>(value);
    }
}

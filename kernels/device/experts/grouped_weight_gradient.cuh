// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Gradients of expert stacks in float32 arithmetic: 64 x 64 elements of an expert's matrix a block. For what the
// tensor-core form leaves out.

#include "device/abi/grouped_matmul.h"
#include "device/lib/pdl.cuh"
#include "device/linear/float_tiles.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using A = StorageOf<VT_A_DTYPE>;
using B = StorageOf<VT_B_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

constexpr int kRows = 64;

} // namespace

extern "C" __global__ void __launch_bounds__(float_tiles::kThreads)
    grouped_weight_gradient(const __grid_constant__ abi::GroupedWeightGradientParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int thread = static_cast<int>(threadIdx.x);
    const int expert = static_cast<int>(blockIdx.z);
    const int firstM = static_cast<int>(blockIdx.y) * kRows;
    const int firstN = static_cast<int>(blockIdx.x) * float_tiles::kOutputs;
    const int begin = p.starts[expert];
    float sums[kRows / 16][4] = {};
    float_tiles::multiply<kRows, true>(
        p.starts[expert + 1] - begin,
        [&](int i, int k) {
            const int m = firstM + thread / 16 + 16 * i;
            return m < p.m ? toFloat(static_cast<const A*>(p.a)[(begin + k) * p.aStride + m]) : 0;
        },
        [&](int out, int k) {
            const int n = firstN + out;
            return n < p.n ? toFloat(static_cast<const B*>(p.b)[(begin + k) * p.bStride + n]) : 0;
        },
        sums);
    for (int i = 0; i < 16; ++i) {
        const i64 m = firstM + thread / 16 * 4 + i / 4;
        const int n = firstN + thread % 16 * 4 + i % 4;
        if (m >= p.m || n >= p.n) {
            continue;
        }
        const i64 inside = VT_SWAPPED ? static_cast<i64>(n) * p.m + m : m * p.n + n;
        Result& result = static_cast<Result*>(p.result)[static_cast<i64>(expert) * p.m * p.n + inside];
        result = fromFloat<Result>(VT_ACCUMULATE ? toFloat(result) + sums[i / 4][i % 4] : sums[i / 4][i % 4]);
    }
}

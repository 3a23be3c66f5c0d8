// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The sum of squares in double: a block a part, then one block adds the sums of the parts.

#include "device/abi/squared_norm.h"
#include "device/lib/double_sums.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

inline constexpr int kNormThreads = 256;

extern "C" __global__ void __launch_bounds__(kNormThreads)
    squared_norm_parts(const __grid_constant__ vitrine::kernels::abi::SquaredNormParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    __shared__ double slots[kNormThreads / 32];
    pdl::wait();
    pdl::launchDependents();
    const X* x = static_cast<const X*>(p.x);
    const i64 begin = blockIdx.x * p.partSize;
    const i64 end = begin + p.partSize < p.n ? begin + p.partSize : p.n;
    double sums[VT_VECTOR] = {};
#pragma unroll 4
    for (i64 at = begin + static_cast<i64>(threadIdx.x) * VT_VECTOR; at < end; at += kNormThreads * VT_VECTOR) {
        float values[VT_VECTOR];
        loadPiece(x + at, values);
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            sums[i] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        }
    }
    double sum = 0;
#pragma unroll
    for (const double part : sums) {
        sum += part;
    }
    sum = blockSum(sum, slots);
    if (threadIdx.x == 0) {
        p.sums[blockIdx.x] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(kNormThreads)
    squared_norm_total(const __grid_constant__ vitrine::kernels::abi::SquaredNormParams p) {
    __shared__ double slots[kNormThreads / 32];
    pdl::wait();
    pdl::launchDependents();
    double sum = 0;
    for (int part = static_cast<int>(threadIdx.x); part < p.parts; part += kNormThreads) {
        sum += p.sums[part];
    }
    sum = blockSum(sum, slots);
    if (threadIdx.x == 0) {
        *p.out = p.accumulate ? *p.out + sum : sum;
    }
}

} // namespace vt

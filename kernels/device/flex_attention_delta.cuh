// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What FlexAttention's backward needs of each row, a warp for each (batch, head, query) of the padded queries:
// delta = sum of out * gradOut, and offset = lse in base 2, +inf for rows that do not exist (their weights become 0) and 0 for
// rows that saw nothing. And the sinks' gradients: dSink = - sum over rows of exp(sink - lse) * delta, a block for each
// head, in a fixed order.

#include "device/abi/flex_attention.h"
#include "device/pdl.cuh"
#include "device/types.cuh"
#include "device/warp.cuh"

namespace vt {

using vitrine::kernels::abi::FlexAttentionParams;

extern "C" __global__ void __launch_bounds__(256) flex_attention_delta(const __grid_constant__ FlexAttentionParams p) {
    using T = StorageOf<VT_DTYPE>;
    pdl::wait();
    pdl::launchDependents();
    const i64 row = static_cast<i64>(blockIdx.x) * 8 + threadIdx.x / 32;
    if (row >= static_cast<i64>(p.batch) * p.heads * p.paddedQueries) {
        return;
    }
    const bool first = threadIdx.x % 32 == 0;
    const i64 query = row % p.paddedQueries;
    if (query >= p.queries) {
        if (first) {
            p.delta[row] = 0;
            p.offsets[row] = __int_as_float(0x7F800000);
        }
        return;
    }
    const i64 head = row / p.paddedQueries % p.heads;
    const i64 batch = row / p.paddedQueries / p.heads;
    const T* out = static_cast<const T*>(p.out.data) + batch * p.out.batchStride + head * p.out.headStride +
                   query * p.out.rowStride;
    const T* upstream = static_cast<const T*>(p.gradOut.data) + batch * p.gradOut.batchStride +
                        head * p.gradOut.headStride + query * p.gradOut.rowStride;
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < VT_HEAD_DIM; i += 32) {
        sum = fmaf(toFloat(out[i]), toFloat(upstream[i]), sum);
    }
    sum = warpSum(sum);
    if (first) {
        const float lse = p.lse[(batch * p.heads + head) * p.queries + query];
        p.delta[row] = sum;
        p.offsets[row] = lse == __int_as_float(static_cast<int>(0xFF800000)) ? 0.0F : lse * 1.4426950408889634F;
    }
}

#if VT_SINKS_DTYPE != 0
extern "C" __global__ void __launch_bounds__(1024)
    flex_attention_dsinks(const __grid_constant__ FlexAttentionParams p) {
    __shared__ float slots[32];
    pdl::wait();
    pdl::launchDependents();
    const int head = static_cast<int>(blockIdx.x);
    const float sink = toFloat(static_cast<const StorageOf<VT_SINKS_DTYPE>*>(p.sinks)[head]);
    float sum = 0;
    for (int batch = 0; batch < p.batch; ++batch) {
        const i64 row = static_cast<i64>(batch) * p.heads + head;
        for (int query = static_cast<int>(threadIdx.x); query < p.queries; query += 1024) {
            sum -= __expf(sink - p.lse[row * p.queries + query]) * p.delta[row * p.paddedQueries + query];
        }
    }
    sum = blockSum(sum, slots);
    if (threadIdx.x == 0) {
        p.dSinks[head] = sum;
    }
}
#endif

} // namespace vt

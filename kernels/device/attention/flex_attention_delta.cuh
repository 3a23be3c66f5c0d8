// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What FlexAttention's backward needs of each row, 8 to 32 lanes for each (batch, head, query) of the padded queries:
// delta = sum of out * gradOut, and offset = lse in base 2, +inf for rows that do not exist (their weights become 0)
// and 0 for rows that saw nothing. And the sinks' gradients: dSink = - sum over rows of exp(sink - lse) * delta, a
// block for each head, in a fixed order.

#include "device/abi/flex_attention.h"
#include "device/lib/pdl.cuh"
#include "device/lib/types.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

using vitrine::kernels::abi::FlexAttentionParams;
using vitrine::kernels::abi::FlexTensor;

namespace flex {

inline constexpr int kDeltaPieces = VT_HEAD_DIM / 8; ///< 16 bytes each; a row has a lane for each
inline constexpr int kDeltaLanes = kDeltaPieces <= 8 ? 8 : kDeltaPieces <= 16 ? 16 : 32;

using DeltaType = StorageOf<VT_DTYPE>;

__device__ __forceinline__ const DeltaType* deltaRow(const FlexTensor& tensor, i64 batch, i64 head, i64 query) {
    return static_cast<const DeltaType*>(tensor.data) + batch * tensor.batchStride + head * tensor.headStride +
           query * tensor.rowStride;
}

/// The part of out * gradOut in a lane's 8 elements.
__device__ __forceinline__ float deltaPart(const DeltaType* out, const DeltaType* upstream) {
    float left[8];
    float right[8];
    loadPiece<8>(out, left);
    loadPiece<8>(upstream, right);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        sum = fmaf(left[i], right[i], sum);
    }
    return sum;
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(256) flex_attention_delta(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    pdl::wait();
    pdl::launchDependents();
    const i64 row = static_cast<i64>(blockIdx.x) * (256 / kDeltaLanes) + threadIdx.x / kDeltaLanes;
    const int piece = static_cast<int>(threadIdx.x) % kDeltaLanes;
    const bool exists = row < static_cast<i64>(p.batch) * p.heads * p.paddedQueries;
    const i64 query = row % p.paddedQueries;
    const i64 head = row / p.paddedQueries % p.heads;
    const i64 batch = row / p.paddedQueries / p.heads;
    const bool computes = exists && query < p.queries;
    float sum = 0;
    if (computes && piece < kDeltaPieces) {
        sum = deltaPart(deltaRow(p.out, batch, head, query) + piece * 8,
                        deltaRow(p.gradOut, batch, head, query) + piece * 8);
    }
#pragma unroll
    for (int lanes = kDeltaLanes / 2; lanes > 0; lanes /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, lanes);
    }
    if (exists && piece == 0) {
        float offset = __int_as_float(0x7F800000);
        if (computes) {
            const float lse = p.lse[(batch * p.heads + head) * p.queries + query];
            offset = lse == __int_as_float(static_cast<int>(0xFF800000)) ? 0.0F : lse * 1.4426950408889634F;
        }
        p.delta[row] = sum;
        p.offsets[row] = offset;
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

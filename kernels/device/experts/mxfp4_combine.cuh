// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weighted sums of the experts' results of a small batch, in order of choice; see mxfp4_gemv_batch.cuh.

#include "device/abi/mxfp4_gemv.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

/// Eight elements of a token for a thread: VT_DIM / 8 threads over the grid's x, tokens over y. It starts when
/// mxfp4_down_batch has, and so after everything before mxfp4_gate_up_batch: weights and residual are there.
extern "C" __global__ void __launch_bounds__(128)
    mxfp4_combine(const __grid_constant__ vitrine::kernels::abi::Mxfp4GemvParams p) {
    constexpr int kTogether = 4; // choices whose results are under way at a time
    const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * 8;
    const i64 token = blockIdx.y;
    const bool inside = at < VT_DIM;
    pdl::launchDependents();
    using Residual = StorageOf<VT_RESIDUAL_DTYPE>;
    alignas(16) Residual residual[8] = {};
    if (inside && p.residual != nullptr) {
        const auto* from =
            reinterpret_cast<const float4*>(static_cast<const Residual*>(p.residual) + token * p.residualStride + at);
#pragma unroll
        for (int word = 0; word < static_cast<int>(sizeof(Residual)) / 2; ++word) {
            reinterpret_cast<float4*>(residual)[word] = __ldcg(from + word);
        }
    }
    float sum[8] = {};
    for (int first = 0; first < p.k; first += kTogether) {
        float weights[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            weights[i] = first + i < p.k ? __ldcg(p.weights + token * p.k + first + i) : 0.0F;
        }
        pdl::wait(); // the first time
        float values[kTogether][8] = {};
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            if (inside && first + i < p.k) {
                loadPiece(static_cast<const bf16*>(p.results) + (token * p.k + first + i) * VT_DIM + at, values[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                sum[j] += weights[i] * values[i][j];
            }
        }
    }
    if (inside) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            sum[j] += toFloat(residual[j]);
        }
        storePiece(sum, static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out) + token * p.outStride + at);
    }
}

} // namespace vt

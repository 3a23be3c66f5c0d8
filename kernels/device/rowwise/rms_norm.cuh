// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// RMSNorm of rows of VT_DIM elements. VT_ROW_THREADS threads (32, or a whole block) hold a row in registers, in pieces
// of VT_VECTOR elements. VT_FORM is RmsNormOrder: 0 cast, then scale; 1 scale, then cast; 2 one plus weight.

#include "device/abi/rms_norm.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

inline constexpr int kNormThreads = VT_ROW_THREADS < 256 ? 256 : VT_ROW_THREADS;

extern "C" __global__ void __launch_bounds__(kNormThreads)
    rms_norm(const __grid_constant__ vitrine::kernels::abi::RmsNormParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using W = StorageOf<VT_W_DTYPE>;
    using Out = StorageOf<VT_OUT_DTYPE>;
    constexpr int kStep = VT_ROW_THREADS * VT_VECTOR;
    constexpr int kPieces = ceilDiv(VT_DIM, kStep);
    constexpr int kRows = kNormThreads / VT_ROW_THREADS;
    const int lane = static_cast<int>(threadIdx.x) % VT_ROW_THREADS;
    const i64 row = static_cast<i64>(blockIdx.x) * kRows + threadIdx.x / VT_ROW_THREADS;
    const bool inside = row < p.rows;
    const X* x = static_cast<const X*>(p.x) + (inside ? row : 0) * p.xStride;
    pdl::wait();
    pdl::launchDependents();
    float values[kPieces][VT_VECTOR];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        const int at = i * kStep + lane * VT_VECTOR;
        if (at < VT_DIM) {
            loadPiece(x + at, values[i]);
#pragma unroll
            for (const float value : values[i]) {
                sum += value * value;
            }
        }
    }
    if constexpr (VT_ROW_THREADS == 32) {
        sum = warpSum(sum);
    } else {
        __shared__ float slots[32];
        sum = blockSum(sum, slots);
    }
    const float inverse = 1.0F / sqrtf(sum / static_cast<float>(VT_DIM) + p.eps);
    Out* out = static_cast<Out*>(p.out) + row * p.outStride;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        const int at = i * kStep + lane * VT_VECTOR;
        if (at < VT_DIM && inside) {
            float weights[VT_VECTOR];
            loadPiece(static_cast<const W*>(p.weight) + at, weights);
            normPiece<VT_FORM, Out>(values[i], weights, inverse);
            storePiece(values[i], out + at);
        }
    }
}

} // namespace vt

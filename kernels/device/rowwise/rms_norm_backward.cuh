// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Gradients of RMSNorm of rows of VT_DIM elements. VT_ROW_THREADS threads (32, or a whole block) take a part: some
// neighbouring rows, one after the other. A thread has the same columns in all of them, so it sums their share of the
// weight's gradient in registers. VT_FORM is RmsNormOrder: 2 is one plus weight. A dtype of what is absent is any.

#include "device/abi/rms_norm_backward.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

inline constexpr int kNormBackThreads = VT_ROW_THREADS < 256 ? 256 : VT_ROW_THREADS;
inline constexpr int kNormBackStep = VT_ROW_THREADS * VT_VECTOR;
inline constexpr int kNormBackPieces = ceilDiv(VT_DIM, kNormBackStep);
/// Whether registers hold x and gradOut of a row; of wider rows they hold only the sums, and read x and gradOut again,
/// from the cache.
inline constexpr bool kNormBackHeld = kNormBackPieces * VT_VECTOR <= (VT_VECTOR > 1 ? 16 : 8);

/// Keeps the compiler from loading more elements at a time than the registers have room for.
__device__ __forceinline__ void beforePiece(int piece) {
    if (!kNormBackHeld && (VT_VECTOR > 1 || piece % 4 == 0)) {
        asm volatile("" ::: "memory");
    }
}

/// gradOut times the weight as it multiplies.
__device__ __forceinline__ void weighPiece(const float (&grad)[VT_VECTOR], const void* weight, int at,
                                           float (&out)[VT_VECTOR]) {
    loadPiece(static_cast<const StorageOf<VT_W_DTYPE>*>(weight) + at, out);
#pragma unroll
    for (int k = 0; k < VT_VECTOR; ++k) {
        out[k] = grad[k] * (VT_FORM == 2 ? 1.0F + out[k] : out[k]);
    }
}

/// A part's sums for the weight's gradient; each thread has its columns of them.
__device__ __forceinline__ void storeSums(const float (&sums)[kNormBackPieces][VT_VECTOR], int lane, float* to) {
#pragma unroll
    for (int i = 0; i < kNormBackPieces; ++i) {
        const int at = i * kNormBackStep + lane * VT_VECTOR;
        if (at < VT_DIM) {
            storePiece(sums[i], to + at);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kNormBackThreads)
    rms_norm_backward(const __grid_constant__ vitrine::kernels::abi::RmsNormBackwardParams p) {
    constexpr int kSlots = kNormBackHeld ? kNormBackPieces : 1;
    constexpr int kParts = kNormBackThreads / VT_ROW_THREADS;
    const int lane = static_cast<int>(threadIdx.x) % VT_ROW_THREADS;
    const i64 part = static_cast<i64>(blockIdx.x) * kParts + threadIdx.x / VT_ROW_THREADS;
    const i64 end = (part + 1) * p.partRows < p.rows ? (part + 1) * p.partRows : p.rows;
    pdl::wait();
    pdl::launchDependents();
    float sums[kNormBackPieces][VT_VECTOR] = {};
    float x[kSlots][VT_VECTOR], grad[kSlots][VT_VECTOR], weighed[VT_VECTOR];
    for (i64 row = part * p.partRows; row < end; ++row) {
        const auto* xRow = static_cast<const StorageOf<VT_X_DTYPE>*>(p.x) + row * p.xStride;
        const auto* gradRow = static_cast<const StorageOf<VT_GRAD_DTYPE>*>(p.gradOut) + row * p.gradOutStride;
        // Opaque in each row, so that the compiler keeps one address for each tensor and not one for each piece.
        int first = lane * VT_VECTOR;
        asm volatile("" : "+r"(first));
        float totals[2] = {}; // of squares, of gradOut * weight * x
#pragma unroll
        for (int i = 0; i < kNormBackPieces; ++i) {
            const int at = i * kNormBackStep + first;
            const int slot = kNormBackHeld ? i : 0;
            beforePiece(i);
            if (at < VT_DIM) {
                loadPiece(xRow + at, x[slot]);
                loadPiece(gradRow + at, grad[slot]);
                weighPiece(grad[slot], p.weight, at, weighed);
#pragma unroll
                for (int k = 0; k < VT_VECTOR; ++k) {
                    totals[0] += x[slot][k] * x[slot][k];
                    totals[1] += weighed[k] * x[slot][k];
                }
            }
        }
        if constexpr (VT_ROW_THREADS == 32) {
            totals[0] = warpSum(totals[0]);
            totals[1] = warpSum(totals[1]);
        } else {
            __shared__ float slots[64];
            blockSums(totals, slots);
        }
        constexpr float kDim = static_cast<float>(VT_DIM);
        const float inverse = 1.0F / sqrtf(totals[0] / kDim + p.eps);
        const float pull = inverse * inverse * inverse * (totals[1] / kDim);
        auto* to = static_cast<StorageOf<VT_OUT_DTYPE>*>(p.gradX) + row * p.gradXStride;
        const auto* residual =
            static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.gradResidual) + row * p.gradResidualStride;
#pragma unroll
        for (int i = 0; i < kNormBackPieces; ++i) {
            const int at = i * kNormBackStep + first;
            const int slot = kNormBackHeld ? i : 0;
            beforePiece(i);
            if (at < VT_DIM) {
                float out[VT_VECTOR] = {};
                if constexpr (!kNormBackHeld) {
                    loadPiece(xRow + at, x[slot]);
                    loadPiece(gradRow + at, grad[slot]);
                }
                if (p.gradResidual != nullptr) {
                    loadPiece(residual + at, out);
                }
                weighPiece(grad[slot], p.weight, at, weighed);
#pragma unroll
                for (int k = 0; k < VT_VECTOR; ++k) {
                    out[k] += inverse * weighed[k] - x[slot][k] * pull;
                    sums[i][k] += grad[slot][k] * (x[slot][k] * inverse);
                }
                storePiece(out, to + at);
            }
        }
    }
    if (p.partials != nullptr && part * p.partRows < p.rows) {
        storeSums(sums, lane, p.partials + part * VT_DIM);
    }
}

} // namespace vt

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The gradient of a gated activation. VT_ACTIVATION as in activation.cuh, VT_LAYOUT as in gate_pieces.cuh. With
// VT_ROW_THREADS 32 or 256 so many threads take a row and sum out * gradOut; with 0 a thread makes one piece. The dtype
// of an absent out is any.

#include "device/abi/gated_activation_backward.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"
#include "device/rowwise/activation.cuh"
#include "device/rowwise/gate_pieces.cuh"

namespace vt {

/// Makes a piece; gives its share of the sum of out * gradOut.
__device__ __forceinline__ float gatedPieceBack(const vitrine::kernels::abi::GatedActivationBackwardParams& p, i64 row,
                                                i64 at) {
    const auto* gateUp = static_cast<const StorageOf<VT_X_DTYPE>*>(p.gateUp) + row * p.gateUpStride;
    const auto* gradOut = static_cast<const StorageOf<VT_GRAD_DTYPE>*>(p.gradOut) + row * p.gradOutStride;
    const float weight = p.rowWeights == nullptr ? 1.0F : p.rowWeights[row];
    float gate[VT_VECTOR], up[VT_VECTOR], grad[VT_VECTOR], out[VT_VECTOR];
    loadGates<VT_LAYOUT>(gateUp, p.n, at, gate, up);
    loadPiece(gradOut + at, grad);
    float dot = 0;
#pragma unroll
    for (int i = 0; i < VT_VECTOR; ++i) {
        const GatedSlopes slopes = gatedSlopes<VT_ACTIVATION>(gate[i], up[i], p.alpha, p.limit);
        dot += slopes.out * grad[i];
        const float weighted = grad[i] * weight;
        out[i] = slopes.out;
        gate[i] = slopes.gate * weighted;
        up[i] = slopes.up * weighted;
    }
    storeGates<VT_LAYOUT>(gate, up, static_cast<StorageOf<VT_GRAD_X_DTYPE>*>(p.gradGateUp) + row * p.gradGateUpStride,
                          p.n, at);
    if (p.out != nullptr) {
        storePiece(out, static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out) + row * p.outStride + at);
    }
    return dot;
}

extern "C" __global__ void __launch_bounds__(256)
    gated_activation_backward(const __grid_constant__ vitrine::kernels::abi::GatedActivationBackwardParams p) {
    pdl::wait();
    pdl::launchDependents();
    const i64 index = gridThread();
#if VT_ROW_THREADS == 0
    const i64 pieces = p.n / VT_VECTOR;
    if (index < p.rows * pieces) {
        gatedPieceBack(p, index / pieces, index % pieces * VT_VECTOR);
    }
#else
    const i64 row = index / VT_ROW_THREADS;
    const i64 lane = index % VT_ROW_THREADS;
    float dot = 0;
    if (row < p.rows) {
        for (i64 at = lane * VT_VECTOR; at < p.n; at += VT_ROW_THREADS * VT_VECTOR) {
            dot += gatedPieceBack(p, row, at);
        }
    }
#if VT_ROW_THREADS == 32
    dot = warpSum(dot);
#else
    __shared__ float slots[32];
    dot = blockSum(dot, slots);
#endif
    if (row < p.rows && lane == 0) {
        p.rowDots[row] = dot;
    }
#endif
}

} // namespace vt

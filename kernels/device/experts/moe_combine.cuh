// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weighted sum of the rows of a token's experts in top-k order, then the residual. A thread makes VT_VECTOR
// outputs.

#include "device/abi/moe_combine.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(256)
    moe_combine(const __grid_constant__ vitrine::kernels::abi::MoeCombineParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using Residual = StorageOf<VT_RESIDUAL_DTYPE>;
    using Out = StorageOf<VT_OUT_DTYPE>;
    pdl::wait();
    pdl::launchDependents();
    const i64 pieces = p.hidden / VT_VECTOR;
    const i64 index = gridThread();
    if (index >= p.tokens * pieces) {
        return;
    }
    const i64 token = index / pieces;
    const i64 at = index % pieces * VT_VECTOR;
    const X* x = static_cast<const X*>(p.x) + at;
    const i64 firstPair = token * p.k;
    float sums[VT_VECTOR] = {};
    for (int j = 0; j < p.k; ++j) {
        float values[VT_VECTOR];
        const i64 row = p.places == nullptr ? firstPair + j : p.places[firstPair + j];
        loadPiece(x + row * p.xStride, values);
        const float weight = p.weights == nullptr ? 1.0F : p.weights[firstPair + j];
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            sums[i] += weight * values[i];
        }
    }
    if (p.residual != nullptr) {
        float values[VT_VECTOR];
        loadPiece(static_cast<const Residual*>(p.residual) + token * p.residualStride + at, values);
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            sums[i] += values[i];
        }
    }
    storePiece(sums, static_cast<Out*>(p.out) + token * p.outStride + at);
}

} // namespace vt

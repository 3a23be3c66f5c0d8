// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Addition, soft cap, cast, rows times weights (VT_KIND 0, 1, 2, 3). A thread takes a piece of VT_VECTOR elements; out
// may be an input.

#include "device/abi/elementwise.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(256)
    elementwise(const __grid_constant__ vitrine::kernels::abi::ElementwiseParams p) {
    using A = StorageOf<VT_A_DTYPE>;
    using Out = StorageOf<VT_OUT_DTYPE>;
    pdl::wait();
    pdl::launchDependents();
    const i64 pieces = p.size / VT_VECTOR;
    const i64 index = gridThread();
    if (index >= p.rows * pieces) {
        return;
    }
    const i64 row = index / pieces;
    const i64 at = index % pieces * VT_VECTOR;
    float values[VT_VECTOR];
    loadPiece(static_cast<const A*>(p.a) + row * p.aStride + at, values);
    if constexpr (VT_KIND == 0) {
        float others[VT_VECTOR];
        loadPiece(static_cast<const StorageOf<VT_B_DTYPE>*>(p.b) + row * p.bStride + at, others);
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            values[i] += others[i];
        }
    } else if constexpr (VT_KIND == 1) {
#pragma unroll
        for (float& value : values) {
            value = p.cap * tanhf(value / p.cap);
        }
    } else if constexpr (VT_KIND == 3) {
        const float weight = static_cast<const float*>(p.b)[row];
#pragma unroll
        for (float& value : values) {
            value *= weight;
        }
    }
    storePiece(values, static_cast<Out*>(p.out) + row * p.outStride + at);
}

} // namespace vt

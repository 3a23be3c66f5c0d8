// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a product's own epilogue could not add: a bias of another dtype, a residual that lies elsewhere.

#include "device/abi/bias_residual.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

using namespace vt;

extern "C" __global__ void __launch_bounds__(256)
    bias_residual(const __grid_constant__ vitrine::kernels::abi::BiasResidualParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    pdl::wait();
    pdl::launchDependents();
    const int pieces = p.columns / VT_VECTOR;
    const i64 index = gridThread();
    if (index >= p.rows * pieces) {
        return;
    }
    const i64 row = index / pieces;
    const int at = static_cast<int>(index % pieces) * VT_VECTOR;
    X* x = static_cast<X*>(p.x) + row * p.xStride + at;
    float values[VT_VECTOR];
    float more[VT_VECTOR];
    loadPiece(x, values);
#if VT_BIAS_DTYPE
    loadPiece(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias) + at, more);
#pragma unroll
    for (int i = 0; i < VT_VECTOR; ++i) {
        values[i] += more[i];
    }
#endif
#if VT_RESIDUAL_DTYPE
    loadPiece(static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.residual) + row * p.residualStride + at, more);
#pragma unroll
    for (int i = 0; i < VT_VECTOR; ++i) {
        values[i] += more[i];
    }
#endif
    storePiece(values, x);
}

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Gated activation between the two products of an MLP. VT_ACTIVATION as in activation.cuh, VT_LAYOUT as in
// gate_pieces.cuh. A thread makes VT_VECTOR outputs.

#include "device/abi/gated_activation.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/rowwise/activation.cuh"
#include "device/rowwise/gate_pieces.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(256)
    gated_activation(const __grid_constant__ vitrine::kernels::abi::GatedActivationParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using Out = StorageOf<VT_OUT_DTYPE>;
    pdl::wait();
    pdl::launchDependents();
    const i64 pieces = p.n / VT_VECTOR;
    const i64 index = gridThread();
    if (index >= p.rows * pieces) {
        return;
    }
    const i64 row = index / pieces;
    const i64 at = index % pieces * VT_VECTOR;
    const X* x = static_cast<const X*>(p.gateUp) + row * p.gateUpStride;
    float gate[VT_VECTOR], up[VT_VECTOR], out[VT_VECTOR];
    loadGates<VT_LAYOUT>(x, p.n, at, gate, up);
#pragma unroll
    for (int i = 0; i < VT_VECTOR; ++i) {
        out[i] = gatedActivation<VT_ACTIVATION>(gate[i], up[i], p.alpha, p.limit);
    }
    storePiece(out, static_cast<Out*>(p.out) + row * p.outStride + at);
}

} // namespace vt

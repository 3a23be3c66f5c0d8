// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// AdamW: a thread updates a piece of VT_VECTOR elements. VT_MASTER: the F32 master is updated and the parameter becomes
// its rounding.

#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/optimizer/adamw_step.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(256) adamw(const __grid_constant__ vitrine::kernels::abi::AdamWParams p) {
    using Parameter = StorageOf<VT_PARAMETER_DTYPE>;
    using Gradient = StorageOf<VT_GRADIENT_DTYPE>;
    pdl::wait();
    const i64 at = gridThread() * VT_VECTOR;
    if (at >= p.n) {
        return;
    }
    Parameter* parameter = static_cast<Parameter*>(p.parameter) + at;
    float values[VT_VECTOR], gradients[VT_VECTOR], moment1[VT_VECTOR], moment2[VT_VECTOR];
    if constexpr (VT_MASTER) {
        loadPiece(p.master + at, values);
    } else {
        loadPiece(parameter, values);
    }
    loadPiece(static_cast<const Gradient*>(p.gradient) + at, gradients);
    loadPiece(p.moment1 + at, moment1);
    loadPiece(p.moment2 + at, moment2);
    const float factor = gradientFactor(p.gradScale);
#pragma unroll
    for (int i = 0; i < VT_VECTOR; ++i) {
        adamWUpdate(p.step, gradients[i] * factor, values[i], moment1[i], moment2[i]);
    }
    storePiece(moment1, p.moment1 + at);
    storePiece(moment2, p.moment2 + at);
    if constexpr (VT_MASTER) {
        storePiece(values, p.master + at);
    }
    storePiece(values, parameter);
}

} // namespace vt

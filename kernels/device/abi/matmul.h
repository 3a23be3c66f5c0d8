// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/nf4_scales.h"

namespace vitrine::kernels::abi {

constexpr int kMatmulAbi = 3;

/// out = scale x W^T + bias (+ residual), in float32 arithmetic, for any dtypes and both storage orders.
struct MatmulParams {
    const void* x;        ///< (rows, in)
    const void* packed;   ///< MXFP4 or NF4 (out, in / 2), or (in, out / 2) when transposed, or null
    const void* scales;   ///< of MXFP4
    const void* dense;    ///< (out, in), or (in, out) when transposed, or null
    const void* bias;     ///< (out), or null
    const void* residual; ///< (rows, out), or null; may be `result`
    void* result;         ///< (rows, out)
    long long xStride, weightStride, residualStride, resultStride;
    int rows, in, out;
    float scale;
    Nf4Scales nf4Scales;
};

} // namespace vitrine::kernels::abi

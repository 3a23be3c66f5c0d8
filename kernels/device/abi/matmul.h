// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/packed_weight.h"

namespace vitrine::kernels::abi {

constexpr int kMatmulAbi = 4;

/// out = scale x W^T + bias (+ residual), in float32 arithmetic, for any dtypes and both storage orders.
struct MatmulParams {
    const void* x;        ///< (rows, in)
    const void* dense;    ///< (out, in), or (in, out) when transposed, or null
    const void* bias;     ///< (out), or null
    const void* residual; ///< (rows, out), or null; may be `result`
    void* result;         ///< (rows, out)
    long long xStride, weightStride, residualStride, resultStride;
    int rows, in, out;
    float scale;
    PackedWeight packed; ///< (out, in), or (in, out) when transposed, of a weight that is not dense
};

} // namespace vitrine::kernels::abi

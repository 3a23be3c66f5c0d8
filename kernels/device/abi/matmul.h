// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kMatmulAbi = 2;

/// out = scale x W^T + bias (+ residual), in float32 arithmetic, for any dtypes and both storage orders.
struct MatmulParams {
    const void* x;      ///< (rows, in)
    const void* blocks; ///< MXFP4 (out, in / 32, 16), or null
    const void* scales;
    const void* dense;    ///< (out, in), or (in, out) when transposed, or null
    const void* bias;     ///< (out), or null
    const void* residual; ///< (rows, out), or null; may be `result`
    void* result;         ///< (rows, out)
    long long xStride, weightStride, residualStride, resultStride;
    int rows, in, out;
    float scale;
};

} // namespace vitrine::kernels::abi

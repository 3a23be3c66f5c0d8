// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kMoeCombineAbi = 1;

/// out[t] = residual[t] + sum over j of weights[t, j] * x[t * k + j]; rows of `hidden` elements, strides in elements.
struct MoeCombineParams {
    const void* x;
    const float* weights; ///< (tokens, k)
    const void* residual; ///< or null
    void* out;
    long long xStride, residualStride, outStride;
    long long tokens, hidden;
    int k;
};

} // namespace vitrine::kernels::abi

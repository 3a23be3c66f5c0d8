// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kMoeCombineAbi = 2;

/// out[t] = residual[t] + sum over j of weights[t, j] * x[t * k + j], or of x[places[t, j]]; rows of `hidden` elements,
/// strides in elements.
struct MoeCombineParams {
    const void* x;
    const float* weights; ///< (tokens, k), or null: 1
    const int* places;    ///< (tokens, k), or null
    const void* residual; ///< or null
    void* out;
    long long xStride, residualStride, outStride;
    long long tokens, hidden;
    int k;
};

} // namespace vitrine::kernels::abi

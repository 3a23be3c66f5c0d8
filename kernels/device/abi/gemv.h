// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kGemvAbi = 1;

/// out[r] = softCap(norm(x[gather[r]]) weight^T + bias) + residual[r] for `rows` rows; weight (outFeatures, VT_DIM).
/// Strides in elements. gather, normWeight, bias and residual may be null; softCap 0 is none.
struct GemvParams {
    const void* x;
    const int* gather;
    const void* normWeight;
    const void* weight;
    const void* bias;
    const void* residual;
    void* out;
    long long xStride, weightStride, residualStride, outStride;
    int rows, outFeatures;
    float eps, softCap;
};

} // namespace vitrine::kernels::abi

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kDenseMlpAbi = 1;

/// active[r] = activation(norm(x[r]) gate^T + bias, norm(x[r]) up^T + bias) for `rows` rows; gate and up (width,
/// VT_DIM), contiguous. normWeight and the biases may be null. Strides in elements.
struct DenseMlpParams {
    const void* x;
    const void* normWeight;
    const void* weight[2]; ///< gate, up
    const void* bias[2];
    void* active;
    long long xStride, activeStride;
    int rows, width;
    float eps, alpha, limit;
};

} // namespace vitrine::kernels::abi

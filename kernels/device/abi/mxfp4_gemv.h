// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kMxfp4GemvAbi = 1;

/// Expert products of few tokens straight from MXFP4 blocks (experts, out, in / 32, 16) and scales (experts, out, in /
/// 32). active = activation(x gateUp^T + bias), results = active down^T + bias, a row for each pair (token, choice);
/// out[t] = residual[t] + sum_j weights[t, j] results[t, j]. Biases and residual may be null. Strides in elements.
struct Mxfp4GemvParams {
    const void* x;
    const int* ids;       ///< (tokens, k)
    const float* weights; ///< (tokens, k)
    const unsigned char* gateUpBlocks;
    const unsigned char* gateUpScales;
    const void* gateUpBias; ///< (experts, 2 VT_WIDTH)
    const unsigned char* downBlocks;
    const unsigned char* downScales;
    const void* downBias; ///< (experts, VT_DIM)
    void* active;         ///< (tokens * k, VT_WIDTH)
    void* results;        ///< (tokens * k, VT_DIM), for more than one token
    const void* residual;
    void* out;
    long long xStride, residualStride, outStride;
    int tokens, k, experts;
    float alpha, limit;
};

} // namespace vitrine::kernels::abi

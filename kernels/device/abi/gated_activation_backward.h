// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kGatedActivationBackwardAbi = 1;

/// gradGateUp (rows, 2 n) from gateUp (rows, 2 n) and gradOut (rows, n); strides in elements.
struct GatedActivationBackwardParams {
    const void* gateUp;
    const void* gradOut;
    const float* rowWeights; ///< (rows) or null
    void* gradGateUp;        ///< may be gateUp
    void* out;               ///< (rows, n) or null
    float* rowDots;          ///< (rows); null when VT_ROW_THREADS is 0
    long long gateUpStride, gradOutStride, gradGateUpStride, outStride;
    long long rows, n;
    float alpha, limit;
};

} // namespace vitrine::kernels::abi

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kBiasResidualAbi = 1;

/// x += bias (+ residual), in place.
struct BiasResidualParams {
    void* x;              ///< (rows, columns)
    const void* bias;     ///< (columns), or null
    const void* residual; ///< (rows, columns), or null
    long long xStride, residualStride;
    long long rows;
    int columns;
};

} // namespace vitrine::kernels::abi

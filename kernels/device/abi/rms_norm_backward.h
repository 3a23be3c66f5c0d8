// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRmsNormBackwardAbi = 1;

/// Rows of `VT_DIM` elements; strides in elements. gradX may be the memory of gradOut or of gradResidual.
struct RmsNormBackwardParams {
    const void* x;
    const void* weight;
    const void* gradOut;
    const void* gradResidual; ///< or null
    void* gradX;
    float* partials; ///< (parts, VT_DIM), sums for gradWeight of each part; or null
    long long xStride, gradOutStride, gradResidualStride, gradXStride;
    long long rows;
    long long partRows; ///< neighbouring rows of a part
    float eps;
};

} // namespace vitrine::kernels::abi

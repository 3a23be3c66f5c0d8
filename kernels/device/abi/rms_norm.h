// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRmsNormAbi = 1;

/// Rows of `VT_DIM` elements; strides in elements. x and out may be the same memory.
struct RmsNormParams {
    const void* x;
    const void* weight;
    void* out;
    long long xStride, outStride;
    long long rows;
    float eps;
};

} // namespace vitrine::kernels::abi

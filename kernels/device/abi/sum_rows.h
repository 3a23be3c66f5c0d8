// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kSumRowsAbi = 1;

/// out (n) from x (rows, n); strides in elements.
struct SumRowsParams {
    const void* x;
    float* out;
    float* partials; ///< (parts, n); null for a single part
    long long xStride;
    long long rows, n;
    long long partRows; ///< neighbouring rows of a part
    int parts;
    int accumulate; ///< 1: add to out
};

} // namespace vitrine::kernels::abi

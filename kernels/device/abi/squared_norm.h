// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kSquaredNormAbi = 1;

/// n elements in `parts` parts of partSize elements; the last one may be short.
struct SquaredNormParams {
    const void* x;
    double* sums; ///< (parts), scratch
    double* out;
    long long n, partSize;
    int parts, accumulate;
};

} // namespace vitrine::kernels::abi

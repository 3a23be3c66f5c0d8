// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kDropoutAbi = 1;

/// out (rows, n) from x (rows, n), which may be the same memory; strides in elements.
struct DropoutParams {
    const void* x;
    void* out;
    long long xStride, outStride;
    long long rows, n;
    long long firstRow;
    unsigned long long stream;
    unsigned key0, key1;
    unsigned threshold; ///< Philox words below it drop their element
    float factor;       ///< of the others
};

} // namespace vitrine::kernels::abi

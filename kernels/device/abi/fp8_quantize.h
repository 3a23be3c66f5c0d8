// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kFp8QuantizeAbi = 1;
constexpr int kFp8QuantizeGroup = 128; ///< inputs that share a scale

/// Rows of activations as E4M3 with a scale for each 128 inputs: the largest magnitude over 448.
struct Fp8QuantizeParams {
    const void* x;       ///< (rows, in); rows begin at multiples of 8 bytes
    unsigned char* data; ///< (rows, in)
    float* scales;       ///< (rows, groups)
    long long xStride;
    int rows, in, groups;
};

} // namespace vitrine::kernels::abi

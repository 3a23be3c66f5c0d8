// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/tensor_map.h"

namespace vitrine::kernels::abi {

constexpr int kInt4GemmAbi = 1;

/// result = x W^T + bias (+ residual) with an INT4 weight as it is stored, on the tensor cores of Hopper.
struct Int4GemmParams {
    TensorMap xMap;             ///< (rows, in) BF16: boxes of 64 inputs of as many rows as a block has
    TensorMap codeMap;          ///< (out, in / 4) taken as 16-bit numbers: boxes of 64 rows of 256 inputs
    const void* scales;         ///< (out, groups)
    const unsigned char* zeros; ///< (out, groups), or null: 8
    const void* bias;           ///< (out), or null
    const void* residual;       ///< (rows, out), or null; may be `result`
    void* result;               ///< (rows, out); rows begin at multiples of 16 bytes
    long long residualStride, resultStride;
    int rows, in, out, groups;
};

} // namespace vitrine::kernels::abi

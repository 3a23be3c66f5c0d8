// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/tensor_map.h"

namespace vitrine::kernels::abi {

constexpr int kFp8GemmAbi = 1;

/// result = x W^T + bias (+ residual), both of E4M3: x with a scale for each 128 inputs of a row (fp8_quantize.h), W
/// with one for each block of 128 x 128.
struct Fp8GemmParams {
    TensorMap weightMap;    ///< (experts * out, in / 2) taken as 16-bit numbers: boxes of 128 rows of 128 inputs
    const unsigned char* x; ///< (rows, in), rows one after the other
    const float* xScales;   ///< (rows, groups)
    const void* scales;     ///< (experts, scaleRows, groups)
    const void* bias;       ///< (out), or (experts, out), or null
    const void* residual;   ///< (rows, out), or null; may be `result`. Of rows that are not in tiles
    void* result;           ///< (rows, out)
    const int* tileCount;   ///< of ExpertSort (expert_sort.h), as the next two; null: all rows times one matrix
    const int* tiles;
    const int* slots;
    long long biasStride, residualStride, resultStride;
    int rows, in, out, groups, scaleRows;
    int pairsPerRow; ///< neighbouring pairs that share a row of x
};

} // namespace vitrine::kernels::abi

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kInt4RowsAbi = 1;

/// result = x W^T + bias (+ residual) with an INT4 weight as it is stored. With `tileCount` the rows belong to experts
/// (expert_sort.h): slot p of a tile reads row p / pairsPerRow of x, writes row p of the result, and multiplies by the
/// matrix of the tile's expert.
struct Int4RowsParams {
    const void* x;              ///< (rows, in) BF16
    const unsigned char* data;  ///< (experts, out, in / 2)
    const void* scales;         ///< (experts, out, groups)
    const unsigned char* zeros; ///< (experts, out, groups), or null: 8
    const void* bias;           ///< (out), or (experts, out), or null
    const void* residual;       ///< (rows, out), or null; may be `result`
    void* result;               ///< (rows, out)
    const int* tileCount;       ///< of ExpertSort, as the next two; null: one matrix
    const int* tiles;
    const int* slots;
    long long xStride, biasStride, residualStride, resultStride;
    int rows, in, out, groups;
    int pairsPerRow;
};

} // namespace vitrine::kernels::abi

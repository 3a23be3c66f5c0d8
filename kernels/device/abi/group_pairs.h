// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sorting pairs by expert, and gathering rows by pairs (kernels/ops/experts/group_pairs.h).

namespace vitrine::kernels::abi {

constexpr int kGroupPairsAbi = 1;
constexpr int kGroupChunk = 512; ///< pairs that a warp counts and places

struct GroupPairsParams {
    const int* ids; ///< (pairs)
    int* starts;    ///< (experts + 1)
    int* pairs;     ///< (pairs)
    int* places;    ///< (pairs)
    int* counts;    ///< (chunks, experts): of each chunk; then its first row of each expert
    int count, experts, chunks;
};

constexpr int kGatherPairsAbi = 1;

struct GatherPairsParams {
    const void* x;                ///< (tokens, width) in pieces
    const int* pairs;             ///< (rows)
    void* out;                    ///< (rows, width)
    long long xStride, outStride; ///< pieces
    int rows, width;              ///< width: pieces
    int pairsPerRow;
};

} // namespace vitrine::kernels::abi

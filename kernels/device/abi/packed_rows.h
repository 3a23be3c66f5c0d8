// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kPackedRowsAbi = 1;
constexpr int kPackedMatrices = 3; ///< at most in a launch
constexpr int kPackedChosen = 64;  ///< experts of a token, at most

/// What VT_ROWS_OF means: which rows a block multiplies, and by which matrix.
enum PackedRowsOf {
    PackedOfRows = 0,  ///< all rows of x, by each of the matrices
    PackedOfTiles = 1, ///< rows of pairs that ExpertSort brought together, by an expert's matrix
    PackedOfPairs = 2, ///< the row of one pair, by its expert's matrix
    PackedOfSums = 3,  ///< the rows of all pairs of a token, each by its expert's matrix, weighted and added up
};

/// A weight as it is stored, its bias and its result.
struct PackedRowsMatrix {
    const unsigned char* data;  ///< (experts, out, in) elements of 4 or 8 bits
    const void* scales;         ///< (experts, scaleRows, groups)
    const unsigned char* zeros; ///< of INT4: (experts, out, groups), or null: 8
    const void* bias;           ///< (out), or (experts, out), or null
    void* result;               ///< (rows, out); of a gated product (rows, features)
    long long biasStride, resultStride;
    long long scaleFactor; ///< row r of the weight has scales of row r * scaleFactor / 2^32
    int scaleRows;         ///< of an expert
    int out;               ///< rows of the weight
    int firstBlock;        ///< of the grid's x that works on this matrix
};

/// result = x W^T + bias (+ residual) with packed weights (VT_W_FORMAT). Gated products (VT_GATE) store the activation
/// of gate and up: 1 both in halves of the one matrix, 2 in its neighbouring rows, 3 in two matrices.
struct PackedRowsParams {
    const void* x; ///< (rows, in) BF16
    PackedRowsMatrix matrices[kPackedMatrices];
    const void* residual; ///< (rows, out) of the one result, or null; may be the result
    const int* tileCount; ///< of ExpertSort (expert_sort.h), as the next two
    const int* tiles;
    const int* slots;
    const int* ids;       ///< (tokens, chosen), for pairs
    const float* weights; ///< (tokens, chosen), for sums of pairs
    long long xStride, residualStride;
    int rows, in, groups;
    int pairsPerRow; ///< neighbouring pairs that share a row of x
    int chosen;
    float alpha, limit; ///< of the activation
};

} // namespace vitrine::kernels::abi

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products over rows that lie expert by expert (kernels/ops/experts/grouped_matmul.h).

#include "device/abi/packed_weight.h"
#include "device/abi/tensor_map.h"

namespace vitrine::kernels::abi {

constexpr int kGroupedMatmulAbi = 3;

/// The tensor-core form takes no more.
constexpr int kGroupedMatmulExperts = 255;

/// result[r] = scale x[r] W^T + bias, W the matrix of row r's expert. The weight's rows are outputs, or, with the
/// variable `contracted`, the contracted axis. The tensor-core form adds a second product before it scales: extra rows
/// by extra matrices of the experts, which are stored as W is.
struct GroupedMatmulParams {
    TensorMap rowMap;    ///< of x: boxes of 128 rows
    TensorMap weightMap; ///< of dense BF16 stacks
    TensorMap extraRowMap, extraWeightMap;
    const void* x;     ///< (rows, in)
    const int* starts; ///< (experts + 1)
    const void* dense; ///< or null
    const void* bias;  ///< (experts, out), or null
    void* result;      ///< (rows, out)
    long long xStride, biasStride, resultStride;
    int experts, in, out;
    int extra; ///< values of the second product's contracted axis, 0: none
    float scale;
    PackedWeight packed; ///< of weights that are not dense
};

constexpr int kGroupedWeightGradientAbi = 1;

/// result[e] = a^T b over the rows of expert e.
struct GroupedWeightGradientParams {
    TensorMap aMap, bMap; ///< boxes of 64 rows
    const void* a;        ///< (rows, m)
    const void* b;        ///< (rows, n)
    const int* starts;    ///< (experts + 1)
    void* result;         ///< (experts, m, n), or (experts, n, m) with the variable `swapped`
    long long aStride, bStride;
    int experts, m, n;
};

constexpr int kGroupedRowsAbi = 1;

/// Sums of rows by expert, and dots of rows with a vector of their expert.
struct GroupedRowsParams {
    const void* rows;     ///< (rows, width)
    const float* weights; ///< (rows), or null
    const void* vectors;  ///< (experts, width)
    const int* starts;    ///< (experts + 1)
    float* result;        ///< (experts, width) sums, or (rows) dots
    long long rowStride, vectorStride;
    int count, experts, width;
};

constexpr int kRouterTopKBackwardAbi = 1;

struct RouterTopKBackwardParams {
    const void* logits;             ///< (tokens, experts)
    const int* ids;                 ///< (tokens, k)
    const float* gradWeights;       ///< (tokens, k)
    const float* gradProbabilities; ///< (experts), or null
    void* gradLogits;               ///< (tokens, experts)
    long long logitsStride, gradStride;
    int tokens, experts, k;
    int topKFirst, normalize;
};

} // namespace vitrine::kernels::abi

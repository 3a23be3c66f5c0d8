// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of few BF16 rows with INT4 weights on a GPU: the weight streams once, as it is stored, and nothing is
// expanded.

#include "kernels/cuda/cuda_context.h"
#include "kernels/ops/linear/matmul.h"

namespace vitrine::kernels {

/// Rows from which on a single weight is better expanded to BF16 and multiplied by cuBLASLt.
inline constexpr std::int64_t kMaxInt4Rows = 64;

/// Rows of x times a matrix, or, with `tileCount`, rows of pairs times the matrices of experts
/// (device/abi/expert_sort.h says what the three tensors hold).
struct Int4Product {
    TensorView x;
    WeightView weight;
    TensorView bias;     ///< or empty
    TensorView residual; ///< or empty; never with experts
    TensorView out;
    std::int64_t rows = 0; ///< of one matrix, at most
    const int* tileCount = nullptr;
    const int* tiles = nullptr;
    const int* slots = nullptr;
    std::int64_t tileBound = 1;
    std::int64_t pairsPerRow = 1; ///< neighbouring pairs that share a row of x
};

/// Whether an INT4 product is one that kernels of Vitrine's own multiply: what is stored and the types allow it.
bool takesInt4(const TensorView& x, const WeightView& weight, const TensorView& out);

/// Launches and says true, or does nothing and says false when shapes, types or alignment do not allow it.
bool multiplyInt4Rows(CudaContext& context, const Int4Product& product);

/// The same for an op without adapter, of few rows.
bool multiplyInt4Rows(CudaContext& context, const Matmul& op);

} // namespace vitrine::kernels

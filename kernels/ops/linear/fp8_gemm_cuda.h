// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of many rows whose two sides are both E4M3 (W8A8), on sm_90a. Activations lose bits there, so these products
// are for comparison: they run only when the user names a variant of the family fp8_gemm (--kernel fp8_gemm=w8a8).
// docs/notes/fp8.md says what they err by.

#include "kernels/cuda/cuda_context.h"
#include "kernels/ops/linear/matmul.h"

namespace vitrine::kernels {

/// x W^T + bias (+ residual). With tiles the rows are pairs of token and expert; the matrix is the expert's, and there
/// is no residual.
struct Fp8Product {
    TensorView x; ///< BF16
    WeightView weight;
    TensorView bias, residual, out;
    TensorView room;                ///< bytes for x as E4M3: at least fp8RowBytes(in) for a row
    std::int64_t tileBound = 0;     ///< at most so many tiles; 0: rows are not in tiles
    const int* tileCount = nullptr; ///< of ExpertSort (kernels/device/abi/expert_sort.h), as the next two
    const int* tiles = nullptr;
    const int* slots = nullptr;
    std::int64_t pairsPerRow = 1; ///< neighbouring pairs that share a row of x
};

/// Bytes of a row of `in` inputs with its scales.
std::int64_t fp8RowBytes(std::int64_t in);

/// Whether the user asked for such products and this device makes this one: an FP8 weight with blocks of 128 by 128,
/// BF16 rows of x, addresses that are aligned.
bool fitsFp8Product(CudaContext& context, const TensorView& x, const WeightView& weight, const TensorView& out);

/// Makes a product that fits, in two launches.
void multiplyFp8(CudaContext& context, const Fp8Product& product);

/// An op without adapter, of more rows than packed_rows takes; its scratch holds x, some rows at a time where all are
/// too many. Says false and does nothing when the op goes another way.
bool multiplyFp8(CudaContext& context, const Matmul& op);

} // namespace vitrine::kernels

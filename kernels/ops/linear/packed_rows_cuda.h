// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of few BF16 rows with INT4 or FP8 weights on a GPU: the weight streams once, as it is stored, and nothing is
// expanded.

#include <array>
#include <initializer_list>
#include <optional>

#include "kernels/core/layer_forms.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/device/abi/packed_rows.h"
#include "kernels/ops/linear/matmul.h"

namespace vitrine::kernels {

/// A weight, its bias or nothing, and where its product goes.
struct PackedTarget {
    WeightView weight;
    TensorView bias;
    TensorView out;
};

/// What turns gates and ups into results. The two are rows of one weight, or two weights of equal shape.
struct PackedGate {
    Activation activation = Activation::Silu;
    GateLayout layout = GateLayout::Halves; ///< of one weight
    float alpha = 0, limit = 0;
};

/// Rows of x times weights. Which rows: abi::PackedRowsOf.
struct PackedProduct {
    TensorView x;
    std::array<PackedTarget, abi::kPackedMatrices> targets;
    int count = 1;                  ///< of targets; several have the same inputs, format and kinds of numbers
    std::optional<PackedGate> gate; ///< the first target's `out` gets the results
    TensorView residual;            ///< or empty; of one target
    abi::PackedRowsOf rowsOf = abi::PackedOfRows;
    std::int64_t rows = 0; ///< of one matrix, at most
    std::int64_t jobs = 1; ///< tiles, pairs or tokens: at most so many matrices work at once
    const int* tileCount = nullptr;
    const int* tiles = nullptr;
    const int* slots = nullptr;
    TensorView ids, weights;      ///< (tokens, chosen), of pairs and of sums
    std::int64_t pairsPerRow = 1; ///< neighbouring pairs that share a row of x
};

/// Launches and says true, or does nothing and says false when shapes, types or alignment do not allow it.
bool multiplyPackedRows(CudaContext& context, const PackedProduct& product);

/// The same for an op that takesPackedRows().
bool multiplyPackedRows(CudaContext& context, const Matmul& op);

/// The same for ops of the same few rows of x, in one launch.
bool multiplyPackedTogether(CudaContext& context, std::initializer_list<const Matmul*> ops);

/// The activation of two such ops, gate and up, in one launch.
bool multiplyPackedGated(CudaContext& context, const Matmul& gate, const Matmul& up, Activation activation,
                         const TensorView& active);

} // namespace vitrine::kernels

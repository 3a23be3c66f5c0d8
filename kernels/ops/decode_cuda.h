// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Fused kernels for few tokens: weights stream once, near the rate of memory. Each function runs its op and says
// true, or does nothing and says false when shapes, types, alignment or the kernel packs do not allow it.

#include "kernels/ops/block_plans.h"
#include "kernels/ops/blocks.h"
#include "kernels/ops/matmul.h"

namespace vitrine::kernels {

/// A few rows of x times a matrix, with what may be fused around it.
struct FewRowsProduct {
    TensorView x;
    TensorView gather; ///< I32: which rows of x, or empty: all
    NormWeights norm;
    LinearView linear;
    TensorView residual; ///< or empty
    TensorView out;
    float softCap = 0;
};
bool multiplyFewRows(CudaContext& context, const FewRowsProduct& product);

/// `plan` is the op's: its cache write is launched apart where the cache is quantized.
bool projectFewTokens(CudaContext& context, const QkvProject& op, const QkvProjectPlan& plan);
/// norm, gate, up and activation; the down product is the caller's.
bool activateFewTokens(CudaContext& context, const DenseMlp& op, const TensorView& active);
bool routeTokens(CudaContext& context, const Route& op);
bool runExpertsOfFewTokens(CudaContext& context, const ExpertMlp& op);

} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Fused kernels for few tokens: weights stream once, near the rate of memory. Each function runs its op and says
// true, or does nothing and says false when shapes, types, alignment or the kernel packs do not allow it.

#include "kernels/device/abi/qkv_project.h"
#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/blocks.h"

namespace vitrine::kernels {

/// `primitives` is the op's: its cache write is launched apart where the cache is quantized.
bool projectFewTokens(CudaContext& context, const QkvProject& op, const QkvProjectPrimitives& primitives);
/// norm, gate, up and activation; the down product is the caller's.
bool activateFewTokens(CudaContext& context, const DenseMlp& op, const TensorView& active);
/// `params` are the op's; its weights are packedMatrix(), weights and results BF16, biases of `biasType` (0: there are
/// none).
bool projectSplit(CudaContext& context, const QkvProject& op, const abi::QkvProjectParams& params,
                  std::int64_t biasType);

bool routeTokens(CudaContext& context, const Route& op);
bool runExpertsOfFewTokens(CudaContext& context, const ExpertMlp& op);
/// Experts with INT4 or FP8 weights, of any number of tokens: gate, up and activation in one launch, and of few tokens
/// the weighted sum inside the other.
bool runPackedExperts(CudaContext& context, const ExpertMlp& op);
/// Experts of many tokens with FP8 weights, whose activations become FP8 too, where the user asked for it
/// (kernels/ops/linear/fp8_gemm_cuda.h).
bool runExpertsInFp8(CudaContext& context, const ExpertMlp& op);

} // namespace vitrine::kernels

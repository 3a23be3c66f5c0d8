// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of up to 64 rows whose contracted axis is split between the blocks of a cluster (kernels/device/split_rows.cuh).
// Each function launches and says true, or does nothing and says false when shapes, types, alignment or the kernel
// packs do not allow it, or when weight_stream.cuh's form is faster.

#include "kernels/device/abi/gemv.h"
#include "kernels/device/abi/qkv_project.h"
#include "kernels/ops/cuda_call.h"
#include "kernels/ops/decode_cuda.h"

namespace vitrine::kernels {

/// A plain matrix whose rows follow each other.
inline bool packedMatrix(const WeightView& weight) {
    return !weight.quantized() && !weight.transposed && weight.dense.shape.rank() == 2 && startsAligned(weight.dense) &&
           weight.dense.stride0() == weight.dense.shape[1];
}

/// VT_FORM: RmsNormForm, or 3 for no norm.
inline std::int64_t formOf(const NormWeights& norm) {
    constexpr std::int64_t kNoNorm = 3;
    return norm.weight.empty() ? kNoNorm : static_cast<std::int64_t>(norm.form);
}

abi::GemvParams gemvParameters(const FewRowsProduct& product);

/// The weight is packedMatrix().
bool multiplySplit(CudaContext& context, const FewRowsProduct& product);

/// `params` are the op's; its weights are packedMatrix(), weights and results BF16, biases of `biasType` (0: there are none).
bool projectSplit(CudaContext& context, const QkvProject& op, const abi::QkvProjectParams& params,
                  std::int64_t biasType);

} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The loss of next-token prediction, with the gradient of the logits in the same pass, and the sum of such losses.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// losses = -log softmax(y)[target] and gradLogits = gradScale (softmax(y) - onehot(target)) dy/dlogits, where y is
/// softCap tanh(logits / softCap), or the logits themselves when softCap is 0. A row whose target is negative is
/// ignored: its loss and its gradient are 0. A NaN among the logits of a row shows in its loss and its gradient.
struct CrossEntropy {
    static constexpr std::string_view kName = "CrossEntropy";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView logits;  ///< (rows, vocab), floats; rows may have a stride
    TensorView targets; ///< (rows) I32
    float softCap = 0;  ///< 0: none
    TensorView losses;  ///< (rows) F32 or F64
    /// (rows, vocab), floats, or empty: losses only. It may be the same memory as logits, also with a narrower dtype:
    /// row r of the gradient begins where row r of the logits begins, so its stride has as many bytes.
    TensorView gradLogits;
    float gradScale = 1; ///< multiplies gradLogits: 1 / (predicted tokens) for the gradient of a mean
    TensorView scratch;
};

void check(const CrossEntropy& op);
Cost cost(const CrossEntropy& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const CrossEntropy& op, const DeviceTraits& traits);
/// Throws BadInput for a target that is not below vocab.
void execute(CpuContext& context, const CrossEntropy& op);
/// Throws Unsupported for F64. A target that is not below vocab makes the row's loss and gradient NaN.
void execute(CudaContext& context, const CrossEntropy& op);

/// out = the sum of losses, or out += it: in their order, or in another that never changes, in double.
struct SumLosses {
    static constexpr std::string_view kName = "SumLosses";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView losses; ///< (rows), F32 or F64
    TensorView out;    ///< (1), F32 or F64
    bool accumulate = false;
};

void check(const SumLosses& op);
Cost cost(const SumLosses& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const SumLosses& op, const DeviceTraits& traits);
void execute(CpuContext& context, const SumLosses& op);
void execute(CudaContext& context, const SumLosses& op);

} // namespace vitrine::kernels

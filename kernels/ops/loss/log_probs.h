// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Log-probabilities of sampled tokens, with the entropy of what they were sampled from, and the gradient of the logits.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// logProbs = log softmax(z)[target], entropies = -sum p log p of p = softmax(z) in nats, lse = log sum exp z, where z
/// is inverseTemperature times softCap tanh(logits / softCap), or times the logits themselves when softCap is 0. A row
/// whose target is negative is ignored: its values are 0. A logit of -infinity has no share in a row's entropy. A NaN
/// among the logits of a row shows in its values.
struct LogProbs {
    static constexpr std::string_view kName = "LogProbs";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView logits;            ///< (rows, vocab), floats; rows may have a stride
    TensorView targets;           ///< (rows) I32
    float softCap = 0;            ///< 0: none
    float inverseTemperature = 1; ///< positive
    TensorView logProbs;          ///< (rows) F32 or F64
    TensorView entropies;         ///< like logProbs, or empty
    TensorView lse;               ///< like logProbs, or empty
    TensorView scratch;
};

void check(const LogProbs& op);
Cost cost(const LogProbs& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const LogProbs& op, const DeviceTraits& traits);
/// Throws BadInput for a target that is not below vocab.
void execute(CpuContext& context, const LogProbs& op);
/// Throws Unsupported for F64. A target that is not below vocab makes the row's values NaN.
void execute(CudaContext& context, const LogProbs& op);

/// gradLogits = gradLogProbs (onehot(target) - softmax(z)) dz/dlogits, with z and lse as of LogProbs. A row is zeros
/// that is ignored, and one whose gradLogProbs is 0.
struct LogProbsBackward {
    static constexpr std::string_view kName = "LogProbsBackward";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView logits;            ///< (rows, vocab), floats; rows may have a stride
    TensorView targets;           ///< (rows) I32
    float softCap = 0;            ///< 0: none
    float inverseTemperature = 1; ///< positive
    TensorView lse;               ///< (rows) F32 or F64
    TensorView gradLogProbs;      ///< (rows) F32 or F64
    /// (rows, vocab), floats. It may be the same memory as logits, also with a narrower dtype: row r of the gradient
    /// begins where row r of the logits begins, so its stride has as many bytes.
    TensorView gradLogits;
    TensorView scratch;
};

void check(const LogProbsBackward& op);
Cost cost(const LogProbsBackward& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const LogProbsBackward& op, const DeviceTraits& traits);
/// Throws BadInput for a target that is not below vocab.
void execute(CpuContext& context, const LogProbsBackward& op);
/// Throws Unsupported for F64. A target that is not below vocab makes the row's gradient NaN, unless gradLogProbs is 0.
void execute(CudaContext& context, const LogProbsBackward& op);

} // namespace vitrine::kernels

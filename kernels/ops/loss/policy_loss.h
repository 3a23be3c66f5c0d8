// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The loss of a policy (PPO, GRPO) over sampled tokens, with the gradient of their log-probabilities.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/device/abi/policy_loss.h"

namespace vitrine::kernels {

using abi::PolicySums;

/// For each token, with r = exp(logProbs - old), d = reference - logProbs and k3(x) = exp(x) - x - 1:
///   loss = weights (klCoefficient k3(d) - w min(r advantages, clamp(r, 1 - clipLow, 1 + clipHigh) advantages)).
/// w = min(exp(old - rollout), importanceCap) is the weight of tokens that another policy sampled; it has no gradient.
/// gradLogProbs = weights (klCoefficient (1 - exp(d)) - w r advantages), without its last term where the clamped term
/// is the smaller one. A token whose target is negative does not count: its gradient is 0. All is computed in double. A
/// NaN shows in the gradient of its token and in the sums.
struct PolicyLoss {
    static constexpr std::string_view kName = "PolicyLoss";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView logProbs;   ///< (rows) F32 or F64
    TensorView targets;    ///< (rows) I32
    TensorView advantages; ///< (rows) F32
    TensorView weights;    ///< (rows) F32: a token's share of the loss
    TensorView old;       ///< (rows) F32 or F64, or empty: logProbs, so that r is 1 and has the slope of r all the same
    TensorView rollout;   ///< (rows) F32, or empty: w is 1
    TensorView reference; ///< (rows) F32, or empty: k3(d) counts as 0
    TensorView entropies; ///< like logProbs, or empty; only summed
    float clipLow = 0;
    float clipHigh = 0;
    float klCoefficient = 0;
    float importanceCap = 0; ///< 0: w is 1
    TensorView gradLogProbs; ///< like logProbs, or empty
    TensorView sums;         ///< (PolicySums::kCount) F64, to which the sums are added
    TensorView scratch;
};

void check(const PolicyLoss& op);
Cost cost(const PolicyLoss& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const PolicyLoss& op, const DeviceTraits& traits);
/// The sums are in the order of the tokens.
void execute(CpuContext& context, const PolicyLoss& op);
/// The sums are in another order, which never changes.
void execute(CudaContext& context, const PolicyLoss& op);

} // namespace vitrine::kernels

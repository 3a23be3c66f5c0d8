// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/policy_loss.h"

#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const PolicyLoss& op) {
    abi::PolicyLossParams parameters{};
    parameters.logProbs = op.logProbs.data;
    parameters.targets = op.targets.as<const int>();
    parameters.advantages = op.advantages.as<const float>();
    parameters.weights = op.weights.as<const float>();
    parameters.old = op.old.data;
    parameters.rollout = op.rollout.as<const float>();
    parameters.reference = op.reference.as<const float>();
    parameters.entropies = op.entropies.data;
    parameters.gradLogProbs = op.gradLogProbs.data;
    parameters.sums = op.sums.as<double>();
    parameters.rows = op.logProbs.shape[0];
    parameters.clipLow = static_cast<double>(op.clipLow);
    parameters.clipHigh = static_cast<double>(op.clipHigh);
    parameters.klCoefficient = static_cast<double>(op.klCoefficient);
    parameters.importanceCap = static_cast<double>(op.importanceCap);
    launchFamily(
        context, "policy_loss", abi::kPolicyLossAbi, parameters,
        {{"x_dtype", dtypeNumber(op.logProbs)}, {"old_dtype", dtypeNumber(op.old.empty() ? op.logProbs : op.old)}});
}

} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The loss of a policy over answers that were sampled (GRPO, PPO), see kernels::PolicyLoss.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/training/passes/objective.h"
#include "kernels/ops/loss/policy_loss.h"

namespace vitrine::engine {

struct PolicyOptions {
    double clipLow = 0.2;     ///< the ratio is clipped below 1 - clipLow
    double clipHigh = 0.28;   ///< and above 1 + clipHigh
    double klCoefficient = 0; ///< of the KL divergence from the reference
    double importanceCap = 2; ///< of the weight exp(old - rollout); 0: every weight is 1
    double temperature = 1;   ///< divides the logits
    /// The log-probabilities of the first step are the old ones of later steps, and those of the reference.
    bool rememberOld = false,
         rememberReference = false; ///< the log-probabilities of the first step are the old ones of later steps
};

/// What is known of a micro-batch: for each of its tokens a value of the token that it predicts. Values of tokens that
/// do not count are not read. Vectors but the first two may be empty.
struct PolicyTokens {
    std::vector<float> advantages;
    std::vector<float> weights;   ///< shares of the loss
    std::vector<float> old;       ///< log-probabilities before the first update; empty: those of the step itself
    std::vector<float> rollout;   ///< as the sampler gave them; empty: importance weights are 1
    std::vector<float> reference; ///< of the reference model; empty: there is no KL, unless it is remembered
};

/// Means over the tokens of a step that count, taken before its update. 0 on Meta, and where the values that they need
/// are not given.
struct PolicyMeans {
    double kl = 0;             ///< k3 of reference and policy
    double clipShare = 0;      ///< tokens whose clipped term is the smaller one
    double entropy = 0;        ///< nats
    double ratio = 0;          ///< of the policy to the old one
    double logprobAbsDiff = 0; ///< |old - rollout|
    double mismatchK3 = 0;     ///< k3 of old and rollout
    double truncatedShare = 0; ///< tokens whose importance weight is cut to the cap
};

class PolicyObjective final : public Objective {
public:
    /// `tokens`: of the micro-batches of every step, which outlive this.
    PolicyObjective(kernels::Context& context, const PolicyOptions& options, std::span<const PolicyTokens> tokens);

    void beginStep(std::span<const TrainingBatch> batches) override;
    void beginBatch(const OpRunner& runner, std::int64_t index) override;
    void run(const OpRunner& runner, const LogitsChunk& chunk) override;
    double loss() override;
    /// Of the last step, after loss().
    const PolicyMeans& means() const { return means_; }
    /// The log-probabilities of a micro-batch that the first step remembered, one for each of its tokens. Waits for the
    /// device. REQUIRES that it remembers them, and a step.
    std::vector<float> remembered(std::int64_t index) const;

private:
    /// The values of a micro-batch on the device; empty views where there are none.
    struct Views {
        kernels::TensorView advantages, weights, old, rollout, reference;
    };

    bool remembers() const { return options_.rememberOld || options_.rememberReference; }

    kernels::Context& context_;
    PolicyOptions options_;
    std::span<const PolicyTokens> tokens_;
    kernels::Tensor sums_;               ///< (PolicySums::kCount) F64
    kernels::Tensor values_;             ///< of the present micro-batch
    std::vector<kernels::Tensor> first_; ///< (tokens) of each micro-batch, where log-probabilities are remembered
    std::int64_t index_ = 0;             ///< of the present micro-batch
    std::int64_t steps_ = 0;             ///< that began
    Views views_;
    PolicyMeans means_;
};

} // namespace vitrine::engine

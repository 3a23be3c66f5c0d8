// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How likely a model finds tokens that are given: nothing is trained, the log-probabilities and entropies are wanted.

#include <span>
#include <vector>

#include "engine/training/passes/objective.h"

namespace vitrine::engine {

/// Of one micro-batch, for each of its tokens the values of the token that it predicts; 0 where none counts.
struct TokenScores {
    std::vector<float> logProbs;
    std::vector<float> entropies; ///< nats, of what that token is chosen from
};

class LogProbObjective final : public Objective {
public:
    /// `temperature` divides the logits.
    LogProbObjective(kernels::Context& context, double temperature) : context_(context), temperature_(temperature) {}

    void beginStep(std::span<const TrainingBatch> batches) override;
    void beginBatch(const OpRunner& runner, std::int64_t index) override;
    /// Throws Internal where a gradient is wanted: there is none.
    void run(const OpRunner& runner, const LogitsChunk& chunk) override;
    /// The mean of the negative log-probabilities of the tokens that count.
    double loss() override;
    /// Of the last step. Waits for the device. Zeros on Meta.
    TokenScores scores(std::int64_t index) const;

private:
    kernels::Context& context_;
    double temperature_;
    std::span<const TrainingBatch> batches_;
    std::vector<kernels::Tensor> values_; ///< of each micro-batch (2, tokens): log-probabilities, entropies
    std::int64_t index_ = 0;              ///< of the present one
};

} // namespace vitrine::engine

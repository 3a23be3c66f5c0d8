// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rollouts as micro-batches. Answers of the same prompt share it: its tokens pass the model once for all of them, see
// TrainingBatch. Only what predicts a token of an answer is in a batch: the last token of a row is not.

#include <cstdint>
#include <vector>

#include "engine/rl/policy/rollouts.h"
#include "engine/training/data/training_batch.h"
#include "engine/training/passes/policy_objective.h"

namespace vitrine::engine {

/// How the loss of all rows is made from the losses of tokens.
enum class Aggregation : std::uint8_t {
    Token,    ///< the mean over the tokens of all answers
    Sequence, ///< the mean over rows of the means over their answers
};

struct PolicyBatchOptions {
    Aggregation aggregation = Aggregation::Token;
    bool sharePrompts = true;
    /// Rows of a micro-batch; 0: as many as have `tokens` together, and answers that share a prompt stay together where
    /// they have as many alone.
    std::int64_t rows = 0;
    std::int64_t tokens = 32768;
};

struct PolicyBatches {
    std::vector<TrainingBatch> batches;
    std::vector<PolicyTokens> tokens; ///< of each of them
    /// Of each, for each token the place in Rollouts (row * width + token) of what it predicts; -1: nothing that
    /// counts.
    std::vector<std::vector<std::int64_t>> places;

    std::int64_t count() const; ///< tokens of all of them
    std::int64_t largest() const;
};

/// REQUIRES checked rollouts, but for their experts: throws BadInput where these are not as many as the tokens need.
/// Where answers share a prompt, a token of the prompt has the experts of the first of their rows that has some, and so
/// has the copy of its last token before each answer whose row has none of it.
PolicyBatches policyBatches(const Rollouts& rollouts, const PolicyBatchOptions& options);

/// Values of each batch's tokens, as (rows, width) of the rollouts; 0 where no token predicts.
std::vector<float> rolloutValues(const Rollouts& rollouts, const PolicyBatches& batches,
                                 const std::vector<std::vector<float>>& values);
/// Sets one kind of values of all micro-batches, `values` (rows, width), as PolicyTokens::old.
void setValues(PolicyBatches& batches, const std::vector<float>& values, std::vector<float> PolicyTokens::* kind);

} // namespace vitrine::engine

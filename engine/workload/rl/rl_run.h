// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One run of reinforcement learning on answers that are given, or the part of it that a plan prices.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/rl/policy/policy_batches.h"
#include "engine/rl/policy/rollouts.h"
#include "engine/training/passes/policy_objective.h"
#include "engine/workload/finetune/finetune_run.h"

namespace vitrine::engine {

/// The file of the option rollouts. Throws BadInput for a bad one, and for one without what the options need.
Rollouts givenRollouts(const Run& run, const ModelSource& source);
/// Its micro-batches, as the options make them.
PolicyBatches givenBatches(const Run& run, const Rollouts& rollouts);

/// The updates: each goes over all rows. Fills run.metrics as they end. The arguments outlive it.
class PolicyUpdates {
public:
    PolicyUpdates(const Run& run, const ModelSource& source, FinetuneModel& model, const Rollouts& rollouts,
                  PolicyBatches& batches);

    void run();
    /// Of the last update.
    double stepSeconds() const { return training_.curves().seconds.empty() ? 0 : training_.curves().seconds.back(); }

private:
    /// Numbers of the updates, each taken before it.
    struct Curves {
        std::vector<double> kl, clipShares, entropies, ratios;
    };

    void updates();
    void update(std::int64_t number);
    void report(const TrainingStep& step, std::int64_t number);
    void referenceOfBase();
    std::vector<float> modelLogProbs();
    void refuseFarLogProbs();
    void resume();
    TrainedRows trainedRows() const;
    nlohmann::json progress() const;
    void rememberFirst();
    void recordRollouts();
    bool remembers() const;
    void addMetrics();

    const Run& run_;
    const ModelSource& source_;
    FinetuneModel& model_;
    const Rollouts& rollouts_;
    PolicyBatches& batches_;
    Trainer trainer_;
    TrainingOutput output_;
    TrainingRun training_;
    std::unique_ptr<PolicyObjective> objective_;
    std::shared_ptr<const nlohmann::json> terms_; ///< null where nothing is written
    Curves curves_;
    PolicyMeans firstMeans_;   ///< of the first update
    std::vector<float> first_; ///< (rows, width) log-probabilities before the first update, where no file has them
};

} // namespace vitrine::engine

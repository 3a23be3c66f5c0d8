// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One run of reinforcement learning on answers that are given, or the part of it that a plan prices.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/workload/rl/policy_step.h"

namespace vitrine::engine {

/// The file of the option rollouts. Throws BadInput for a bad one, and for one without what the options need.
Rollouts givenRollouts(const Run& run, const ModelSource& source);

/// The updates: each goes over all rows. Fills run.metrics as they end. The arguments outlive it.
class PolicyUpdates {
public:
    PolicyUpdates(const Run& run, const ModelSource& source, FinetuneModel& model, const Rollouts& rollouts,
                  PolicyBatches& batches);

    void run();
    /// Of the last update.
    double stepSeconds() const { return training_.curves().seconds.empty() ? 0 : training_.curves().seconds.back(); }

private:
    void updates();
    void update(std::int64_t number);
    void resume();
    void recordRollouts(std::int64_t number);
    TrainedRows trainedRows() const;
    nlohmann::json progress() const;
    void addMetrics();

    const Run& run_;
    const ModelSource& source_;
    FinetuneModel& model_;
    const Rollouts& rollouts_;
    PolicyBatches& batches_;
    Trainer trainer_;
    TrainingOutput output_;
    TrainingRun training_;
    PolicyStep step_;
    std::shared_ptr<const nlohmann::json> terms_; ///< null where nothing is written
    PolicyCurves curves_;
    PolicyMeans firstMeans_; ///< of the first update
};

} // namespace vitrine::engine

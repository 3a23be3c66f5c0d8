// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Updates of a policy on one batch of rollouts: the objective, what its first update finds, and the events of the
// trace.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/rl/policy/policy_batches.h"
#include "engine/rl/policy/rollouts.h"
#include "engine/training/parameters/initial_values.h"
#include "engine/training/passes/policy_objective.h"
#include "engine/workload/finetune/finetune_run.h"
#include "engine/workload/rl/kept_rollouts.h"

namespace vitrine::engine {

/// The micro-batches of rollouts, as the options make them.
PolicyBatches optionBatches(const Run& run, const Rollouts& rollouts);

struct PolicyStepOptions {
    std::string file;      ///< that the rollouts came from, for messages; empty: the run sampled them
    bool remembers = true; ///< somebody needs what the first update finds: later updates, or a checkpoint
    /// The reference is the model without its adapter, or with these values, and not the model before the first
    /// update.
    bool referenceIsBase = false;
    InitialValues* initial = nullptr; ///< for a model without an adapter; outlives the step
};

/// The arguments outlive it.
class PolicyStep {
public:
    PolicyStep(const Run& run, FinetuneModel& model, Trainer& trainer, TrainingRun& training, const Rollouts& rollouts,
               PolicyBatches& batches, PolicyStepOptions options);

    /// What the first update found, where a checkpoint has it. Called before begin().
    void takeFirst(std::vector<float> first);
    /// Scores the reference where it is no part of the first update.
    void begin();
    /// The update `number` of the run. `before` is called when its gradients are complete. Throws BadInput before the
    /// weights change where a log-probability that was given makes a ratio that is no number.
    TrainingStep update(std::int64_t number, const std::function<void()>& before = {});
    /// Of the last update, and of the first one that this object made.
    const PolicyMeans& means() const { return objective_->means(); }
    const PolicyMeans& firstMeans() const { return firstMeans_; }
    /// (rows, width): log-probabilities before the first update, where no file has them and they are remembered.
    const std::vector<float>& first() const { return first_; }
    /// What a token of a row stands for; null: nobody knows.
    using TextOfToken = std::function<std::string(std::int64_t row, std::int64_t token)>;
    /// The first rows with all log-probabilities that are known, for the session. `batch`: the number of their events,
    /// from 1. None where no values are computed.
    RolloutRecords records(std::int64_t batch, std::int64_t rows, const TextOfToken& text) const;

private:
    std::vector<float> modelLogProbs();
    void refuseFarLogProbs();
    bool lacksValues() const;
    void rememberFirst();

    const Run& run_;
    FinetuneModel& model_;
    Trainer& trainer_;
    TrainingRun& training_;
    const Rollouts& rollouts_;
    PolicyBatches& batches_;
    PolicyStepOptions options_;
    std::unique_ptr<PolicyObjective> objective_;
    PolicyMeans firstMeans_;
    std::vector<float> first_;
    bool updated_ = false;
};

/// The numbers of a policy's updates, each taken before it.
struct PolicyCurves {
    std::vector<double> kl, clipShares, entropies, ratios;

    void add(const PolicyMeans& means);
};

/// What an update says to the trace, to the training's curves and files, and to whoever watches the run.
void reportPolicyUpdate(const Run& run, FinetuneModel& model, TrainingRun& training, const TrainingStep& step,
                        const PolicyMeans& means, std::int64_t number);

} // namespace vitrine::engine

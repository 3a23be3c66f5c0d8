// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reinforcement learning from problems: each step samples answers with the weights that train, has them judged, and
// updates the weights on them.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/rl/group_sampler.h"
#include "engine/workload/rl/policy_step.h"
#include "engine/workload/rl/rl_numbers.h"
#include "engine/workload/rl/rollout_weights.h"

namespace vitrine::engine {

/// The loop. Fills run.metrics as steps end. The arguments outlive it.
class PolicyLoop {
public:
    PolicyLoop(const Run& run, const ModelSource& source, FinetuneModel& model, const ProblemSource& problems,
               Rewarder& rewarder);

    void run();
    /// Of the last step.
    double stepSeconds() const { return steps_.empty() ? 0 : steps_.back().seconds; }
    /// Of all steps: answers whose pages others took, so that they were computed again.
    std::int64_t preemptions() const { return preemptions_; }

private:
    /// What the next step begins with, besides the trained state.
    struct Position {
        std::int64_t next = 0; ///< number of the next problem
        std::vector<RolloutGroup> underWay;
    };

    void steps();
    void step(std::int64_t number);
    std::vector<RolloutGroup> rollouts(RlStep& now, Position& position);
    TrainingStep train(RlStep& now, std::span<const RolloutGroup> groups, std::int64_t number);
    TrainingStep update(RlStep& now, std::span<const RolloutGroup> groups, TrainedAnswers& answers,
                        std::int64_t number);
    void watchJudges(const SamplingCounts& counts);
    void endWithoutJudges(std::int64_t number);
    void withSampler(RlStep& now, const std::function<void()>& work);
    bool evaluates(std::int64_t number) const;
    void evaluate(std::int64_t number, RlStep& now);
    void report(const TrainingStep& trained, std::int64_t number);
    void keepGroupRewards(std::span<const RolloutGroup> groups);
    std::vector<std::string> textsOfRow(const RolloutGroup& group, const GroupAnswer& answer) const;
    void recordRollouts(const PolicyStep& step, std::span<const RolloutGroup> groups, const TrainedAnswers& answers,
                        std::int64_t number);
    void keepAnswers(std::span<const RolloutGroup> groups, std::int64_t number);
    void resume();
    TrainedRows trainedRows() const;
    nlohmann::json progress() const;
    void addMetrics();
    double clockSeconds() const;

    const Run& run_;
    const ModelSource& source_;
    FinetuneModel& model_;
    kernels::Context& context_;
    const ProblemSource& problems_;
    Rewarder& rewarder_;
    GroupSampler sampler_;
    RolloutWeights weights_;
    Trainer trainer_;
    std::unique_ptr<InitialValues> initial_; ///< null where there is no KL divergence, or an adapter
    TrainingOutput output_;
    TrainingRun training_;
    std::shared_ptr<const nlohmann::json> terms_; ///< null where nothing is written
    Position position_;                           ///< after the last whole step
    std::vector<RlStep> steps_;
    KeptSteps kept_;
    RolloutRecords newest_; ///< of the last step, where it is none of these: a session has it when the run ends
    std::int64_t preemptions_ = 0;
    std::int64_t unjudgedSteps_ = 0, unjudgedAnswers_ = 0; ///< since a judge gave a reward
    std::string judgeError_;                               ///< the last of them
    std::vector<double> evalRewards_;
    std::vector<std::int64_t> evalSteps_;
    std::unique_ptr<nlohmann::json> groupRewards_; ///< an array: of each step the mean rewards of its groups
    std::unique_ptr<nlohmann::json> answers_;      ///< an array: texts of some groups
    std::unique_ptr<nlohmann::json> afterSleep_;   ///< bytes by category, when the sampler slept last
};

/// Loads the model, makes problems and judges as the options name them, and gives the loop to `work`.
void withPolicyLoop(const Run& run, const ModelSource& source, kernels::Context& context,
                    const std::function<void(PolicyLoop&)>& work);

} // namespace vitrine::engine

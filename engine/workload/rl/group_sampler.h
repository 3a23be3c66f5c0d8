// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Asks a policy: problems become prompts, prompts groups of answers, and answers get rewards. Where a judge replies
// with a message, the conversation goes on with it: the policy reads the message behind its own tokens, as it sampled
// them.
//
// What comes of a step depends on its first problem, the groups that are under way and the weights, and on no clock:
// answers are sampled in waves, and judged while others are sampled. So a run that goes on repeats what it would have
// done.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/rl/problems/problem.h"
#include "engine/rl/rewards/rewarder.h"
#include "engine/rl/rollout/rollout_engine.h"
#include "engine/rl/rollout/rollout_group.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/common/run_speculation.h"

namespace vitrine::engine {

/// What one call of sample() was like.
struct SamplingCounts {
    std::int64_t problems = 0;                   ///< that were asked
    std::int64_t equalRight = 0, equalWrong = 0; ///< groups that were drawn again: all rewards highest, all lowest
    std::int64_t rewards = 0;                    ///< answers that were judged well or badly
    std::int64_t judgeErrors = 0;                ///< answers that could not be judged
    std::string lastError;                       ///< of these
    bool ranOut = false;       ///< ten times the problems were asked, and too few groups had a difference
    double judgingSeconds = 0; ///< that nothing was sampled in
};

/// Answers to the problems of an evaluation, each the most likely one.
struct PolicyEvaluation {
    double reward = 0; ///< mean
    std::int64_t judged = 0, errors = 0;
};

/// Belongs to the thread of the model's context. The arguments outlive it.
class GroupSampler {
public:
    /// Throws BadInput for a model without what the problems need.
    GroupSampler(const Run& run, const ModelSource& source, Model& model, const ProblemSource& problems,
                 Rewarder& rewarder);

    /// Brings the groups that are under way and new ones, as many as the option prompts together, as far as they go in
    /// this step. Returns those that ended; the others stay in `underWay`. `next` is the number of the next problem.
    std::vector<RolloutGroup> sample(std::vector<RolloutGroup>& underWay, std::int64_t& next, SamplingCounts& counts);
    PolicyEvaluation evaluate();

    RolloutEngine& engine() { return engine_; }
    const RolloutEngine& engine() const { return engine_; }
    /// The text of an answer as its judge sees it.
    std::string textOf(const std::vector<std::int32_t>& ids) const;
    /// What each token of an answer adds to the texts of its channels: empty for special tokens and the names of
    /// channels. REQUIRES a tokenizer.
    std::vector<std::string> textsOf(const std::vector<std::int32_t>& ids) const;
    const Tokenizer* tokenizer() const { return maker_.tokenizer().get(); } ///< null: there are no texts
    /// The request that a problem's prompt makes.
    GenerateRequest requestOf(const Problem& problem);

private:
    BatchOptions options(const ModelSource& source);
    RolloutGroup newGroup(std::int64_t number);
    /// Groups that are sampled together, as far as they go in a step.
    struct Wave {
        std::vector<RolloutGroup>& groups;
        std::int64_t samples = 0; ///< answers of a group
        bool evaluates = false;   ///< each answer is the most likely one, and is sampled to its end

        /// Ids of answers are group * samples + place.
        RolloutGroup& groupOf(std::int64_t id) const { return groups[static_cast<std::size_t>(id / samples)]; }
        GroupAnswer& answerOf(std::int64_t id) const {
            return groupOf(id).answers[static_cast<std::size_t>(id % samples)];
        }
    };
    /// Answers of a wave, by their ids.
    using WaveIds = std::vector<std::int64_t>;
    GenerateRequest requestOf(const Wave& wave, std::int64_t id);
    void sampleWave(const Wave& wave, const WaveIds& ids);
    void take(const Wave& wave, std::int64_t id, GenerateResult& result);
    void judge(const RolloutGroup& group, const GroupAnswer& answer, std::int64_t id, bool isEvaluation);
    void collect(const std::function<void(const Judgement&)>& take);
    WaveIds takeJudgements(const Wave& wave, SamplingCounts& counts);
    bool goOn(const RolloutGroup& group, GroupAnswer& answer, const std::string& reply);
    std::vector<std::int32_t> tokensOfReply(const RolloutGroup& group, const GroupAnswer& answer,
                                            const std::string& said, const std::string& reply);
    void play(const Wave& wave, SamplingCounts& counts);
    void dropEqual(std::vector<RolloutGroup>& groups, SamplingCounts& counts) const;
    std::int64_t roomFor(const GenerateRequest& request, std::int64_t has) const;
    bool hasRoom(const RolloutGroup& group, const GroupAnswer& answer) const;

    const Run& run_;
    Model& model_;
    const ProblemSource& problems_;
    Rewarder& rewarder_;
    RequestMaker maker_;
    std::int64_t samples_, prompts_, maxNewTokens_, partialTokens_, turns_;
    bool dynamic_;
    std::int64_t positions_; ///< of the model's context; 0: no limit
    std::unique_ptr<RunSpeculation> speculation_;
    RolloutEngine engine_;
};

} // namespace vitrine::engine

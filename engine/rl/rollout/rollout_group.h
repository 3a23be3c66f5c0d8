// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Answers to one problem while they are sampled and judged, and the rollouts that training takes of many groups.

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/generation/generator.h"
#include "engine/rl/policy/rollouts.h"
#include "engine/rl/problems/problem.h"

namespace vitrine::engine {

/// One answer of a group, or what was said in a conversation of several turns. A long one may be sampled over several
/// steps of training.
struct GroupAnswer {
    static constexpr std::int32_t kNotSaid = -1; ///< the version of tokens that the policy only read

    std::vector<std::int32_t> ids; ///< all after the prompt
    /// Of each, at the temperature that sampled and over the whole vocabulary: what training computes again. Filters
    /// (top-p, top-k) leave out what is unlikely, and their probabilities would be no policy's.
    std::vector<float> logProbs;
    std::vector<std::int32_t> versions;       ///< of each: that of the weights that sampled it
    ReadExperts experts;                      ///< of the prompt and it, where they were asked for
    FinishReason finish = FinishReason::None; ///< None: it goes on
    std::optional<double> reward;
    double judgeSeconds = std::numeric_limits<double>::quiet_NaN(); ///< of its last judge; NaN: not measured
    std::string error; ///< why it has no reward; empty: it has one, or is not judged yet
    std::vector<ChatMessage>
        turns;                  ///< what was said after the problem, answers and replies in turn, before `turnBegin`
    std::int64_t turnBegin = 0; ///< the first token of the last answer

    bool ended() const { return finish != FinishReason::None; }
    /// Whether it ended because it was too long.
    bool cut() const { return finish == FinishReason::Length || finish == FinishReason::Context; }
    std::int64_t saidTokens() const;
    bool hasSeveralVersions() const;
    std::vector<std::int32_t> lastAnswer() const { return {ids.begin() + turnBegin, ids.end()}; }
    /// The judge has answered with a message: the conversation goes on behind these tokens.
    void goOn(const std::string& answer, const std::string& reply, const std::vector<std::int32_t>& tokens);
};

/// No training asks as many.
inline constexpr std::int64_t kMostProblems = std::int64_t{1} << 40;

struct RolloutGroup {
    std::int64_t number = 0; ///< of its problem, see ProblemSource::training
    std::shared_ptr<const Problem> problem;
    std::vector<std::int32_t> prompt;
    std::vector<GroupAnswer> answers;

    bool ended() const;
    /// Whether its judged answers differ in their rewards: others teach nothing.
    bool differs() const;
    /// Of its judged answers; nothing where none is.
    std::optional<double> meanReward() const;
};

/// What training does with answers that were too long.
enum class CutAnswers : std::uint8_t {
    Keep,     ///< they count as any other
    Mask,     ///< their rewards count for their group, their tokens are not trained
    Penalise, ///< a penalty is taken off their rewards
};

struct TrainedRowOptions {
    CutAnswers cut = CutAnswers::Keep;
    double penalty = 0;
    bool keepsEqualGroups = false; ///< groups whose rewards are all the same are trained too (for a KL divergence)
};

/// Rollouts of groups that have ended.
struct TrainedAnswers {
    Rollouts rollouts; ///< with advantages and rollout log-probabilities; no rows where nothing can be trained
    std::vector<std::pair<std::size_t, std::size_t>> places; ///< of each row: its group, and its place in the group
    std::int64_t leftOutGroups = 0; ///< without a difference, or with fewer than two judged answers
    std::int64_t maskedAnswers = 0;
};
TrainedAnswers trainedAnswers(std::span<const RolloutGroup> groups, const TrainedRowOptions& options);

/// Groups that are under way, for a checkpoint.
nlohmann::json groupsJson(std::span<const RolloutGroup> groups);
/// The same again, with problems of `source`. Throws BadInput "FILE: groups[0].FIELD: what" for what no checkpoint of
/// this program has.
std::vector<RolloutGroup> readGroups(const nlohmann::json& json, const ProblemSource& source, std::int64_t vocab,
                                     const std::string& file);

} // namespace vitrine::engine

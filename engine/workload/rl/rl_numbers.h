// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The numbers of the steps of reinforcement learning: one table says their names in results, files of metrics,
// checkpoints and the trace.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rl/rollout/rollout_group.h"
#include "engine/workload/experiment/result_fields.h"

namespace vitrine::engine {

/// Of one step. NaN where a step has no such number.
struct RlStep {
    double reward = 0;                                              ///< mean of all judged answers
    double rewardLow = 0, rewardHigh = 0;                           ///< ends of the middle half of the groups' means
    double answerTokens = 0;                                        ///< mean
    double cutShare = 0;                                            ///< answers that ended because they were too long
    double loss = 0, kl = 0, clipShare = 0, entropy = 0, ratio = 0; ///< means over the updates
    /// Of the first update: |difference of log-probabilities| between trainer and sampler, k3, tokens whose importance
    /// weight was cut, effective sample size over tokens.
    double absDifference = 0, largestDifference = 0, mismatchK3 = 0, truncatedShare = 0, effectiveShare = 0;
    double codesChanged = 0;
    /// Of router replay: tokens of answers whose experts were given, and given experts that the trainer's routers would
    /// not have chosen.
    double replayedShare = 0, expertDisagreement = 0;
    double leftOutGroups = 0, judgeErrors = 0, problems = 0;
    double mixedShare = 0;      ///< trained answers with tokens of several versions of the weights
    double draftAcceptance = 0; ///< of drafted tokens
    double rolloutSeconds = 0, judgingSeconds = 0, logProbSeconds = 0, updateSeconds = 0, weightSeconds = 0,
           evaluationSeconds = 0, seconds = 0; ///< the last: of the whole step
    double rolloutRate = 0;                    ///< sampled tokens per second of rolloutSeconds
    double rolloutPeak = 0, trainingPeak = 0;  ///< bytes
    double afterSleep = 0;                     ///< bytes that stayed when the sampler slept
};

/// A number of a step.
struct RlNumber {
    const ResultField* field; ///< its list in results; its key is that of files too
    double RlStep::* value;
    std::string_view part; ///< the list is this member of the result; empty: it is the result itself
};
std::span<const RlNumber> rlNumbers();
/// "phase_seconds.rollout": in files of metrics, in the trace and in checkpoints.
std::string rlNumberName(const RlNumber& number);

/// Adds what the groups that were sampled say: rewards, lengths, versions.
void addGroupNumbers(RlStep& step, std::span<const RolloutGroup> groups);
/// Adds how the trainer's log-probabilities differ from the sampler's; both (rows, width).
void addDifferences(RlStep& step, const Rollouts& rollouts, const std::vector<float>& trainer);

/// The result fields of all steps.
void addRlResults(nlohmann::json& metrics, std::span<const RlStep> steps);
nlohmann::json rlStepsJson(std::span<const RlStep> steps);
/// The same again. Throws BadInput that names the file for what a checkpoint does not have so.
std::vector<RlStep> readRlSteps(const nlohmann::json& json, const std::string& file);

} // namespace vitrine::engine

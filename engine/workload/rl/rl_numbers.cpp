// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/rl_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::array<RlNumber, 34> kRlNumbers{{
    {&result::kRewards, &RlStep::reward, {}},
    {&result::kRewardsLow, &RlStep::rewardLow, {}},
    {&result::kRewardsHigh, &RlStep::rewardHigh, {}},
    {&result::kAnswerTokens, &RlStep::answerTokens, {}},
    {&result::kCutShare, &RlStep::cutShare, {}},
    {&result::kLosses, &RlStep::loss, {}},
    {&result::kDivergence, &RlStep::kl, {}},
    {&result::kClipShare, &RlStep::clipShare, {}},
    {&result::kEntropy, &RlStep::entropy, {}},
    {&result::kMeanRatio, &RlStep::ratio, {}},
    {&result::kLogprobAbsDiff, &RlStep::absDifference, {}},
    {&result::kLogprobMaxDiff, &RlStep::largestDifference, {}},
    {&result::kMismatchK3, &RlStep::mismatchK3, {}},
    {&result::kTruncatedShare, &RlStep::truncatedShare, {}},
    {&result::kEffectiveShare, &RlStep::effectiveShare, {}},
    {&result::kCodesChanged, &RlStep::codesChanged, {}},
    {&result::kReplayedShare, &RlStep::replayedShare, {}},
    {&result::kExpertDisagreement, &RlStep::expertDisagreement, {}},
    {&result::kLeftOutGroups, &RlStep::leftOutGroups, {}},
    {&result::kJudgeErrors, &RlStep::judgeErrors, {}},
    {&result::kAskedProblems, &RlStep::problems, {}},
    {&result::kMixedVersions, &RlStep::mixedShare, {}},
    {&result::kDraftAcceptance, &RlStep::draftAcceptance, {}},
    {&result::kRolloutRates, &RlStep::rolloutRate, {}},
    {&result::kAfterSleep, &RlStep::afterSleep, {}},
    {&result::kPeakByRole, &RlStep::rolloutPeak, "rollout"},
    {&result::kPeakByRole, &RlStep::trainingPeak, "training"},
    {&result::kPhaseSeconds, &RlStep::rolloutSeconds, "rollout"},
    {&result::kPhaseSeconds, &RlStep::judgingSeconds, "judging"},
    {&result::kPhaseSeconds, &RlStep::logProbSeconds, "logprobs"},
    {&result::kPhaseSeconds, &RlStep::updateSeconds, "update"},
    {&result::kPhaseSeconds, &RlStep::weightSeconds, "weights"},
    {&result::kPhaseSeconds, &RlStep::evaluationSeconds, "evaluation"},
    {&result::kStepSeconds, &RlStep::seconds, {}},
}};

/// Of all steps; null where a step has no such number.
Json listOf(const RlNumber& number, std::span<const RlStep> steps) {
    Json out = Json::array();
    for (const RlStep& step : steps) {
        const double value = step.*number.value;
        out.push_back(std::isfinite(value) ? Json(value) : Json());
    }
    return out;
}

/// Between the two nearest of sorted values.
double quantile(const std::vector<double>& sorted, double share) {
    const double at = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

} // namespace

std::span<const RlNumber> rlNumbers() {
    return kRlNumbers;
}

std::string rlNumberName(const RlNumber& number) {
    return number.part.empty() ? std::string(number.field->key) : fmt::format("{}.{}", number.field->key, number.part);
}

void addGroupNumbers(RlStep& step, std::span<const RolloutGroup> groups) {
    std::vector<double> means;
    double answers = 0, tokens = 0, cut = 0, mixed = 0, rewards = 0, judged = 0;
    for (const RolloutGroup& group : groups) {
        for (const GroupAnswer& answer : group.answers) {
            answers += 1;
            tokens += static_cast<double>(answer.saidTokens());
            cut += answer.cut() ? 1 : 0;
            mixed += answer.hasSeveralVersions() ? 1 : 0;
            if (answer.reward) {
                rewards += *answer.reward;
                judged += 1;
            }
        }
        if (const std::optional<double> mean = group.meanReward()) {
            means.push_back(*mean);
        }
    }
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    step.answerTokens = answers > 0 ? tokens / answers : kNone;
    step.cutShare = answers > 0 ? cut / answers : kNone;
    step.mixedShare = answers > 0 ? mixed / answers : kNone;
    std::ranges::sort(means);
    step.reward = judged > 0 ? rewards / judged : kNone;
    step.rewardLow = means.empty() ? kNone : quantile(means, 0.25);
    step.rewardHigh = means.empty() ? kNone : quantile(means, 0.75);
}

void addDifferences(RlStep& step, const Rollouts& rollouts, const std::vector<float>& trainer) {
    double largest = 0, weights = 0, squares = 0, tokens = 0;
    for (std::int64_t row = 0; row < rollouts.rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        for (std::int64_t token = rollouts.promptLengths[at]; token < rollouts.lengths[at]; ++token) {
            if (!rollouts.isSaid(row, token)) {
                continue;
            }
            const auto place = static_cast<std::size_t>(row * rollouts.width + token);
            const double difference =
                static_cast<double>(trainer[place]) - static_cast<double>(rollouts.rollout[place]);
            largest = std::max(largest, std::fabs(difference));
            const double weight = std::exp(difference);
            weights += weight;
            squares += weight * weight;
            tokens += 1;
        }
    }
    step.largestDifference = largest;
    step.effectiveShare = tokens > 0 && squares > 0 ? weights * weights / squares / tokens : 0;
}

void addRlResults(Json& metrics, std::span<const RlStep> steps) {
    for (const RlNumber& number : kRlNumbers) {
        Json list = listOf(number, steps);
        Json& field = metrics[std::string(number.field->key)];
        if (number.part.empty()) {
            field = std::move(list);
        } else {
            field[std::string(number.part)] = std::move(list);
        }
    }
}

Json rlStepsJson(std::span<const RlStep> steps) {
    Json out = Json::object();
    for (const RlNumber& number : kRlNumbers) {
        out[rlNumberName(number)] = listOf(number, steps);
    }
    return out;
}

std::vector<RlStep> readRlSteps(const Json& json, const std::string& file) {
    std::vector<RlStep> out;
    bool first = true;
    for (const RlNumber& number : kRlNumbers) {
        const std::string name = rlNumberName(number);
        if (!json.is_object() || !json.contains(name) || !json[name].is_array() ||
            (!first && json[name].size() != out.size())) {
            throw base::BadInput(fmt::format("{}: rl_steps: {}: has no number for each step", file, name));
        }
        out.resize(json[name].size());
        first = false;
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Json& value = json[name][i];
            out[i].*number.value = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
        }
    }
    return out;
}

} // namespace vitrine::engine

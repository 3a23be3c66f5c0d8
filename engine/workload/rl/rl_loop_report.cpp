// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What the loop says of its steps: to files, to the trace and to whoever watches, and in the result.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/tokenizer/tokenizer.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_save.h"
#include "engine/workload/rl/rl_loop.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

using Json = nlohmann::json;

namespace {

constexpr std::size_t kKeptAnswers = 400; ///< texts in a result
constexpr std::size_t kKeptOfGroup = 4;
constexpr std::int64_t kTracedTokens = 16384; ///< of a step's rollouts that a session keeps

} // namespace

void PolicyLoop::report(const TrainingStep& trained, std::int64_t number) {
    const RlStep& last = steps_.back();
    std::vector<double> row;
    for (const RlNumber& each : rlNumbers()) {
        const double value = last.*each.value;
        if (each.value != &RlStep::loss) {
            row.push_back(value);
        }
        if (std::isfinite(value)) {
            context_.tracer().counter(rlNumberName(each), value);
        }
    }
    training_.report(trained, number, row);
    if (run_.sinks.metric) {
        run_.sinks.metric("loss", last.loss);
        run_.sinks.metric("reward", last.reward);
        run_.sinks.metric("tokens_per_second", last.rolloutRate);
    }
    if (run_.sinks.progress != nullptr) {
        const double left = static_cast<double>(training_.steps() - number) * last.seconds;
        run_.sinks.progress->progress(fmt::format("Step {}, reward {:.3f}, {:.0f} sampled tokens/s, {:.0f} s left",
                                                  number, last.reward, last.rolloutRate, left),
                                      static_cast<std::uint64_t>(number),
                                      static_cast<std::uint64_t>(training_.steps()));
    }
}

void PolicyLoop::keepGroupRewards(std::span<const RolloutGroup> groups) {
    Json rewards = Json::array();
    for (const RolloutGroup& group : groups) {
        const std::optional<double> mean = group.meanReward();
        rewards.push_back(mean ? Json(*mean) : Json());
    }
    groupRewards_->push_back(std::move(rewards));
}

/// What the tokens of a row stand for: of its prompt what was asked, of its answer what was said.
std::vector<std::string> PolicyLoop::textsOfRow(const RolloutGroup& group, const GroupAnswer& answer) const {
    const Tokenizer& tokenizer = *sampler_.tokenizer();
    std::vector<std::string> out = questionTexts(tokenizer, group.prompt, askedText(*group.problem));
    if (answer.turns.empty()) {
        const std::vector<std::string> said = sampler_.textsOf(answer.ids);
        out.insert(out.end(), said.begin(), said.end());
        return out;
    }
    for (const std::int32_t id : answer.ids) { // a conversation: both speak
        out.push_back(tokenizer.isSpecial(id) ? std::string() : tokenizer.bytesOf(id));
    }
    return out;
}

/// A session cannot take back what it has, so the newest step waits until the next one comes, or the run ends.
void PolicyLoop::recordRollouts(const PolicyStep& step, std::span<const RolloutGroup> groups,
                                const TrainedAnswers& answers, std::int64_t number) {
    std::vector<std::string> texts; // of the row that was asked for last
    std::int64_t known = -1;
    const auto text = [&](std::int64_t row, std::int64_t token) {
        if (known != row) {
            known = row;
            const auto [group, place] = answers.places[static_cast<std::size_t>(row)];
            texts = textsOfRow(groups[group], groups[group].answers[place]);
        }
        return token < std::ssize(texts) ? texts[static_cast<std::size_t>(token)] : std::string();
    };
    newest_ = step.records(number, rowsOfWholeGroups(answers.rollouts, answers.places, kTracedTokens),
                           sampler_.tokenizer() != nullptr ? PolicyStep::TextOfToken(text) : nullptr);
    if (kept_.tokens(number)) {
        std::exchange(newest_, {}).report(context_.tracer());
    }
}

/// Of the first group, so that a result shows what the policy says.
void PolicyLoop::keepAnswers(std::span<const RolloutGroup> groups, std::int64_t number) {
    if (groups.empty() || !context_.can().computesValues || answers_->size() >= kKeptAnswers) {
        return;
    }
    const RolloutGroup& group = groups.front();
    for (std::size_t i = 0; i < std::min(group.answers.size(), kKeptOfGroup); ++i) {
        const GroupAnswer& answer = group.answers[i];
        answers_->push_back({{"step", number},
                             {"problem", group.problem->name},
                             {"prompt", askedText(*group.problem)},
                             {"text", sampler_.textOf(answer.ids)},
                             {"tokens", answer.ids.size()},
                             {"reward", answer.reward ? Json(*answer.reward) : Json()},
                             {"finish_reason", finishReasonName(answer.finish)}});
    }
}

void PolicyLoop::addMetrics() {
    std::exchange(newest_, {}).report(context_.tracer());
    addCurveMetrics(run_, model_, training_.curves());
    Json& metrics = run_.metrics;
    addRlResults(metrics, steps_);
    metrics[result::kAfterSleepOwners.key] = *afterSleep_;
    if (!context_.can().computesValues) {
        return;
    }
    metrics[result::kEvalRewards.key] = evalRewards_;
    metrics[result::kRlEvalSteps.key] = evalSteps_;
    metrics[result::kGroupRewards.key] = *groupRewards_;
    metrics[result::kSampledAnswers.key] = *answers_;
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a checkpoint of the loop keeps, and how a run goes on from it.

#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/count_text.h"
#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/tokenizer/json_field.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/rl/rl_loop.h"

namespace vitrine::engine {

using Json = nlohmann::json;

namespace {

/// Answers under way go on as they began, each in its place of its group.
void requireRoom(const Experiment& spec, std::span<const RolloutGroup> groups, const std::string& checkpoint) {
    const std::int64_t most = spec.integer("max_new_tokens");
    for (const RolloutGroup& group : groups) {
        if (static_cast<std::int64_t>(group.answers.size()) != spec.integer("samples")) {
            throw base::BadInput(fmt::format("samples: {} has {} of a problem under way; give as many", checkpoint,
                                             base::countText(std::ssize(group.answers), "answer")));
        }
        for (const GroupAnswer& answer : group.answers) {
            if (!answer.ended() && static_cast<std::int64_t>(answer.ids.size()) >= most) {
                throw base::BadInput(fmt::format("max_new_tokens: {} has an answer of {} under way; give more",
                                                 checkpoint, base::countText(std::ssize(answer.ids), "token")));
            }
        }
    }
}

} // namespace

TrainedRows PolicyLoop::trainedRows() const {
    return {problems_.digest(), run_.spec.maybeInteger("batch").value_or(0), training_.steps()};
}

Json PolicyLoop::progress() const {
    return {{"rl_steps", rlStepsJson(steps_)},
            {"updates_of_step", run_.spec.integer("updates")},
            {"next_problem", position_.next},
            {"groups", groupsJson(position_.underWay)},
            {"version", sampler_.engine().version()},
            {"requests", sampler_.engine().requests()},
            {"eval_rewards", evalRewards_},
            {"eval_reward_steps", evalSteps_},
            {"group_rewards", *groupRewards_},
            {"sampled_answers", *answers_},
            {"terms", terms_ != nullptr ? *terms_ : Json()},
            {"spec", run_.spec.toJson()}};
}

void PolicyLoop::resume() {
    const auto take = [this](const Json& progress, const std::string& checkpoint) {
        const std::string output = run_.spec.text("output");
        checkResumeTerms(progress.value("terms", Json()),
                         terms_ == nullptr ? resumeTerms(run_, source_, model_, trainedRows()) : *terms_, checkpoint,
                         !output.empty() && !goesOnIn(checkpoint, output));
        if (!progress.contains("rl_steps")) {
            throw base::BadInput(checkpoint + ": is of a training on given answers; go on with its rollouts");
        }
        if (progress.value("updates_of_step", std::int64_t{0}) != run_.spec.integer("updates")) {
            throw base::BadInput(fmt::format("updates: {} made {} in a step; give as many", checkpoint,
                                             progress.value("updates_of_step", std::int64_t{0})));
        }
        steps_ = readRlSteps(progress["rl_steps"], checkpoint);
        if (const auto next = JsonField(progress, checkpoint).find("next_problem")) {
            position_.next = next->asInteger(0, kMostProblems);
        }
        position_.underWay =
            readGroups(progress.value("groups", Json::array()), problems_, source_.config.vocab, checkpoint);
        requireRoom(run_.spec, position_.underWay, checkpoint);
        sampler_.engine().setVersion(progress.value("version", std::int64_t{0}));
        if (const auto requests = JsonField(progress, checkpoint).find("requests")) {
            sampler_.engine().setRequests(requests->asInteger(0, std::numeric_limits<std::int32_t>::max()));
        }
        takeNumbers(evalRewards_, progress, "eval_rewards", checkpoint, std::nullopt);
        takeNumbers(evalSteps_, progress, "eval_reward_steps", checkpoint, std::nullopt);
        *groupRewards_ = progress.value("group_rewards", Json::array());
        *answers_ = progress.value("sampled_answers", Json::array());
    };
    if (training_.resume(take)) {
        run_.metrics[result::kResumedFromStep.key] = training_.first() - 1;
    }
}

} // namespace vitrine::engine

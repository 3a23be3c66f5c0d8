// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a checkpoint of the loop keeps, and how a run goes on from it.

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/rl/rl_loop.h"

namespace vitrine::engine {

using Json = nlohmann::json;

TrainedRows PolicyLoop::trainedRows() const {
    return {problems_.digest(), run_.spec.maybeInteger("batch").value_or(0), training_.steps()};
}

Json PolicyLoop::progress() const {
    return {{"rl_steps", rlStepsJson(steps_)},
            {"updates_of_step", run_.spec.integer("updates")},
            {"next_problem", position_.next},
            {"groups", groupsJson(position_.underWay)},
            {"version", sampler_.engine().version()},
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
        position_.next = progress.value("next_problem", std::int64_t{0});
        position_.underWay =
            readGroups(progress.value("groups", Json::array()), problems_, source_.config.vocab, checkpoint);
        sampler_.engine().setVersion(progress.value("version", std::int64_t{0}));
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

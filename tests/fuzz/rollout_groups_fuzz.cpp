// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any JSON is groups under way, which a checkpoint keeps as they are and training takes, or BadInput with one line.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/rl/policy/policy_batches.h"
#include "engine/rl/problems/task.h"
#include "engine/rl/rollout/rollout_group.h"

namespace base = vitrine::base;
namespace engine = vitrine::engine;

namespace {

constexpr std::int64_t kVocab = 512;

void requireTrained(const std::vector<engine::RolloutGroup>& groups) {
    for (const engine::CutAnswers cut :
         {engine::CutAnswers::Keep, engine::CutAnswers::Mask, engine::CutAnswers::Penalise}) {
        const engine::TrainedAnswers trained = engine::trainedAnswers(groups, {cut, 0.5, true});
        std::int64_t predicted = 0;
        for (const engine::TrainingBatch& batch : engine::policyBatches(trained.rollouts, {}).batches) {
            predicted += batch.predicted();
        }
        if (predicted != trained.rollouts.answerTokens()) {
            std::abort();
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::unique_ptr<engine::ProblemSource> kSource = engine::taskProblems(*engine::findTask("sums"), 1, 2);
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const nlohmann::json json = base::parseStrictJson(text, "fuzz");
        const std::vector<engine::RolloutGroup> groups = engine::readGroups(json, *kSource, kVocab, "fuzz");
        const nlohmann::json kept = engine::groupsJson(groups);
        if (engine::groupsJson(engine::readGroups(kept, *kSource, kVocab, "again")).dump() != kept.dump()) {
            std::abort();
        }
        requireTrained(groups);
    } catch (const base::BadInput& error) {
        if (error.message().find('\n') != std::string::npos) {
            std::abort();
        }
    }
    return 0;
}

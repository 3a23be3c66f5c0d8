// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/batch/expert_ranks.h"

#include <array>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/option_value.h"

namespace vitrine::engine {

namespace {

/// The names that configs have for the number of experts.
constexpr std::array<const char*, 3> kExpertCounts = {"n_routed_experts", "num_experts", "num_local_experts"};

} // namespace

void checkExpertRanks(const Experiment& experiment, const std::string& name) {
    if (experiment.integer("expert_ranks") <= 1) {
        return;
    }
    if (!experiment.isPlan()) {
        failOption(name, "expert_ranks", "is for plans: a run has one device; leave it out, or plan it");
    }
    if (experiment.has("adapter")) {
        failOption(name, "adapter", "cannot be divided among expert_ranks; leave one of them out");
    }
}

ModelSource openRankSource(const Run& run) {
    const std::int64_t ranks = run.spec.integer("expert_ranks");
    ModelSource whole = openSource(run);
    if (ranks <= 1) {
        return whole;
    }
    const std::string model = run.spec.text("model");
    const std::int64_t experts = whole.config.experts;
    if (experts == 0) {
        throw base::BadInput(fmt::format("expert_ranks: {} has no experts; leave it out", model));
    }
    if (experts % ranks != 0 || experts / ranks < whole.config.expertsPerToken) {
        throw base::BadInput(fmt::format("expert_ranks: {}: {} cannot divide its {} experts so that each device has at "
                                         "least the {} of a token; give a divisor",
                                         ranks, model, experts, whole.config.expertsPerToken));
    }
    if (whole.checkpoint != nullptr) {
        throw base::BadInput(
            fmt::format("expert_ranks: plans synthetic models only; give synthetic:NAME instead of {}", model));
    }
    const auto config = nlohmann::json::parse(whole.configText);
    std::map<std::string, std::string> fields = run.spec.pairs("set");
    for (const char* key : kExpertCounts) {
        if (config.contains(key)) {
            fields[key] = std::to_string(experts / ranks);
        }
    }
    return openModel(model, fields);
}

} // namespace vitrine::engine

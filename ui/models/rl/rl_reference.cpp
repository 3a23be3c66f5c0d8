// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_reference.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/rl/rl_run.h"

namespace vitrine::ui {

namespace {

/// The model of a run that samples with the weights that it trains; empty: it is none.
std::string modelOfPlainRun(const sessions::RunInfo& run) {
    if (!isRlRun(run)) {
        return {};
    }
    const auto spec = engine::Experiment::read(run.specJson);
    const bool plain = spec && spec->text("qat") == "none" && !spec->has("rollouts") &&
                       (!spec->has("rollout") || spec->text("rollout") == "bf16");
    return plain ? spec->text("model") : std::string();
}

double medianDifference(const std::string& metricsJson) {
    const nlohmann::json results = base::parsedObject(metricsJson);
    const auto list = results.find(engine::result::kLogprobAbsDiff.key);
    if (list == results.end() || !list->is_array()) {
        return 0;
    }
    std::vector<double> values;
    for (const nlohmann::json& value : *list) {
        if (value.is_number() && value.get<double>() > 0) {
            values.push_back(value.get<double>());
        }
    }
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

} // namespace

std::optional<RlReference> rlReference(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& run) {
    const auto spec = engine::Experiment::read(run.specJson);
    if (!spec || !modelOfPlainRun(run).empty()) {
        return std::nullopt;
    }
    for (auto other = runs.rbegin(); other != runs.rend(); ++other) {
        if (other->id != run.id && modelOfPlainRun(*other) == spec->text("model")) {
            if (const double difference = medianDifference(other->metricsJson); difference > 0) {
                return RlReference{other->id, difference};
            }
        }
    }
    return std::nullopt;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/rates/rate_series.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/resource_path.h"
#include "base/strict_json.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/planner/plan_price.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr const char* kShippedSeries = "device-profiles/series/rates.json";
constexpr const char* kLayers = "num_hidden_layers";
constexpr std::int64_t kFewestLayers = 2; ///< one sliding, one full
constexpr std::uint64_t kMostEntries = 1000;

std::string memberText(const json& entry, const char* key, const std::string& where) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_string() || found->get<std::string>().empty()) {
        throw base::BadInput(fmt::format("{}: {}: a text is expected", where, key));
    }
    return found->get<std::string>();
}

/// Layers that the experiment sets; 0: none, its model has those of its config.
std::int64_t layersOf(const engine::Experiment& experiment) {
    const auto set = experiment.pairs("set");
    const auto found = set.find(kLayers);
    return found == set.end() ? 0 : std::atoll(found->second.c_str());
}

engine::Experiment withLayers(const engine::Experiment& experiment, std::int64_t layers) {
    json spec = experiment.toJson();
    spec["set"][kLayers] = std::to_string(layers);
    return engine::Experiment::parse(spec, kShippedSeries);
}

} // namespace

std::vector<RateExperiment> readRateSeries(const std::string& file) {
    const std::string path = file.empty() ? base::resourcePath(kShippedSeries) : file;
    const json entries = base::readStrictJson(path);
    if (!entries.is_array() || entries.empty() || entries.size() > kMostEntries) {
        throw base::BadInput(fmt::format("{}: an array of 1 to {} experiments is expected", path, kMostEntries));
    }
    std::vector<RateExperiment> series;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::string where = fmt::format("{}: entry {}", path, i + 1);
        const json& entry = entries[i];
        if (!entry.is_object() || !entry.contains("experiment") || entry.size() != 2) {
            throw base::BadInput(where + ": {\"name\", \"experiment\"} is expected");
        }
        RateExperiment one{memberText(entry, "name", where),
                           engine::Experiment::parse(entry["experiment"], where + ": experiment")};
        if (one.experiment.isPlan() || !one.experiment.has("profile") || one.experiment.text("profile") == "off") {
            throw base::BadInput(where +
                                 ": experiment: a run that is recorded is expected, no plan and no profile off");
        }
        series.push_back(std::move(one));
    }
    return series;
}

std::optional<engine::Experiment> fittedToDevice(const engine::Experiment& experiment, std::uint64_t deviceBytes,
                                                 const base::StopToken& stop) {
    std::int64_t layers = layersOf(experiment);
    if (layers == 0 || experiment.workload().plan == nullptr) {
        return experiment;
    }
    engine::PlanPricer pricer;
    for (engine::Experiment fitted = experiment;; fitted = withLayers(experiment, layers)) {
        engine::Experiment plan = fitted.asPlan();
        plan.set("backend", std::string("cuda"));
        plan.set("vram_budget", deviceBytes);
        const engine::PlanPrice& price = pricer.price(plan, stop);
        if (!price.known() || price.fits) {
            return fitted; // what cannot be planned may still run
        }
        if (layers <= kFewestLayers) {
            return std::nullopt;
        }
        layers = std::max(kFewestLayers, layers / 2);
    }
}

} // namespace vitrine::app

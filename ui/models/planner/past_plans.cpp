// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/planner/past_plans.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/planner/plan_price.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_draft.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr int kEnoughRuns = 3;

/// The plan of what was run, on the device that it ran on.
engine::PlanPrice priceOf(engine::PlanPricer& pricer, const PastRun& run) {
    const std::optional<engine::Experiment> experiment = engine::Experiment::read(run.experiment);
    if (!experiment || experiment->workload().plan == nullptr || run.device.isEmpty()) {
        return {};
    }
    return pricer.price(planFor(experiment->asPlan(), run.device), {});
}

} // namespace

engine::Experiment planFor(engine::Experiment planned, const QString& device) {
    if (device == QLatin1String("cpu")) {
        planned.set("backend", std::string("cpu"));
    } else if (!device.isEmpty()) {
        planned.set("backend", std::string("meta"));
        planned.set("device_profile", device.toStdString());
    }
    return planned;
}

QString runDevice(const sessions::RunInfo& run) {
    // A run that goes on has no result yet, but its environment stands since its start.
    const Json environment = base::parsedObject(run.environmentJson);
    const Json metrics = base::parsedObject(run.metricsJson);
    if (engine::textOf(metrics, engine::result::kBackend) == "cpu" || base::textAt(environment, "backend") == "cpu") {
        return QStringLiteral("cpu");
    }
    const auto device = environment.find("device");
    return device != environment.end() && device->is_object() ? deviceNamed(textOf(base::textAt(*device, "name")))
                                                              : QString();
}

std::vector<PastRun> measuredRuns(const std::vector<sessions::RunInfo>& runs) {
    std::vector<PastRun> out;
    for (const sessions::RunInfo& run : runs) {
        const Json metrics = base::parsedObject(run.metricsJson);
        const std::uint64_t peak = engine::countOf(metrics, engine::result::kPeakBytes).value_or(0);
        const bool isPlanned = engine::textOf(metrics, engine::result::kTimeBase) == "virtual";
        const std::optional<engine::Experiment> experiment = engine::Experiment::read(run.specJson);
        if (run.status != sessions::RunStatus::Done || peak == 0 || isPlanned || !experiment || experiment->isPlan() ||
            experiment->workload().plan == nullptr) {
            continue;
        }
        PastRun past;
        past.run = run.id;
        past.name = textOf(run.name);
        past.model = textOf(experiment->text("model"));
        past.device = runDevice(run);
        past.predicted = engine::countOf(metrics, engine::result::kPlannedPeakBytes).value_or(0);
        past.experiment = run.specJson;
        past.measured = peak;
        out.push_back(std::move(past));
    }
    return out;
}

std::vector<sessions::RunId> doneRuns(const std::vector<sessions::RunInfo>& runs) {
    std::vector<sessions::RunId> out;
    for (const sessions::RunInfo& run : runs) {
        if (run.status == sessions::RunStatus::Done) {
            out.push_back(run.id);
        }
    }
    return out;
}

std::vector<PastRun> predictedRuns(std::vector<PastRun> runs) {
    engine::PlanPricer pricer;
    for (PastRun& run : runs) {
        try {
            run.predicted = run.predicted > 0 ? run.predicted : priceOf(pricer, run).peak;
        } catch (const base::BadInput&) {
            run.predicted = 0; // its files are gone, or this version has no such option
        }
    }
    std::erase_if(runs, [](const PastRun& run) { return run.predicted == 0; });
    return runs;
}

ErrorBand errorBand(const std::vector<PastRun>& runs, const QString& model, const QString& device) {
    double all = 0, own = 0;
    int ownRuns = 0;
    for (const PastRun& run : runs) {
        const double error = std::abs(run.error());
        all = std::max(all, error);
        if (run.model == model && run.device == device) {
            own = std::max(own, error);
            ++ownRuns;
        }
    }
    if (ownRuns >= kEnoughRuns) {
        return {own, ownRuns, true};
    }
    return static_cast<int>(runs.size()) >= kEnoughRuns ? ErrorBand{all, static_cast<int>(runs.size()), false}
                                                        : ErrorBand{};
}

} // namespace vitrine::ui

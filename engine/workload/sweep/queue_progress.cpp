// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/queue_progress.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/training/files/training_checkpoint.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/planner/plan_changes.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

/// Steps that a plan of a training run stands for; 0: not known.
double plannedSteps(const Experiment& experiment, const Json& metrics) {
    if (!takesOption(experiment, "steps")) {
        return 0;
    }
    if (takesOption(experiment, "rollouts") && experiment.has("rollouts")) {
        return static_cast<double>(experiment.integer("updates"));
    }
    if (const auto steps = experiment.maybeInteger("steps")) {
        return static_cast<double>(*steps);
    }
    if (!takesOption(experiment, "epochs")) {
        return 0;
    }
    const double sequences = numberOf(metrics, result::kSequences).value_or(0);
    const auto batch = static_cast<double>(experiment.maybeInteger("batch").value_or(1) *
                                           std::max<std::int64_t>(experiment.integer("accumulate"), 1));
    return std::ceil(sequences / std::max(batch, 1.0)) * static_cast<double>(experiment.integer("epochs"));
}

/// "checkpoint offload and rank 4"
std::string changeWords(const Experiment& changed, const PlanChange& change) {
    std::string out;
    for (const OptionEdit& edit : change.edits) {
        out += (out.empty() ? "" : " and ") + sweepRunName({{edit.key, changed.valueText(edit.key)}});
    }
    return out;
}

/// The experiment itself with a change that was found for its plan; nothing where it does not take it.
std::optional<Experiment> withChange(const Experiment& experiment, const PlanChange& change) {
    try {
        return Experiment::parse(edited(experiment, change.edits).toJson(), "experiment");
    } catch (const base::Error&) {
        return std::nullopt;
    }
}

void addNearest(QueuePrice& out, const Experiment& experiment, const Experiment& plan, double before,
                PlanPricer& pricer, const base::StopToken& stop) {
    for (const PlanChange& change : fittingChanges(pricer, plan, 0, stop)) {
        if (!change.price.fits) {
            continue;
        }
        if (change.otherDevice) {
            if (out.nearest.empty()) {
                out.nearest = change.moreDevices() ? fmt::format("no change or pair fits; {} devices do",
                                                                 edited(plan, change.edits).integer("tp"))
                                                   : fmt::format("no change or pair fits; {} does",
                                                                 edited(plan, change.edits).text("device_profile"));
            }
            continue;
        }
        if (const auto changed = withChange(experiment, change)) {
            out.nearest = changeWords(*changed, change);
            out.nearestSpec = changed->jsonText();
            out.nearestPeak = change.price.reserved;
            out.nearestTime = before > 0 && change.price.seconds > 0 ? change.price.seconds / before : 0;
            return;
        }
    }
}

} // namespace

bool takeMetric(QueuedRun& run, std::string_view name, double value) {
    if (name == (run.earnsRewards ? "reward" : "loss")) {
        run.value = value;
    } else if (name == "tokens_per_second") {
        run.tokensPerSecond = value;
    } else if (name == "eval_step") {
        run.step = std::max(run.step, static_cast<std::int64_t>(value));
    } else if (name == (run.earnsRewards ? "eval_reward" : "eval_loss")) {
        run.evaluations.push_back({run.step, value});
        return true;
    }
    return false;
}

void takeProgress(QueuedRun& run, std::string_view what, std::uint64_t done, std::uint64_t total) {
    if (what.starts_with("Training") || what.starts_with("Step ") || what.starts_with("Update,")) {
        run.step = static_cast<std::int64_t>(done);
        run.steps = static_cast<std::int64_t>(total);
    }
}

void takeResults(QueuedRun& run, std::string_view metricsJson) {
    const Json metrics = base::parsedObject(metricsJson);
    const Json& steps = rowsOf(metrics, run.earnsRewards ? result::kRlEvalSteps : result::kEvalSteps);
    const Json& values = rowsOf(metrics, run.earnsRewards ? result::kEvalRewards : result::kEvalLosses);
    std::vector<QueueEvaluation> evaluations;
    for (std::size_t i = 0; i < std::min(steps.size(), values.size()); ++i) {
        if (steps[i].is_number() && values[i].is_number()) {
            evaluations.push_back({steps[i].get<std::int64_t>(), values[i].get<double>()});
        }
    }
    if (!evaluations.empty()) {
        run.evaluations = std::move(evaluations);
    }
    const Json& all = rowsOf(metrics, run.earnsRewards ? result::kRewards : result::kLosses);
    if (!all.empty() && all.back().is_number()) {
        run.value = all.back().get<double>();
        run.step = static_cast<std::int64_t>(all.size());
    }
    run.steps =
        static_cast<std::int64_t>(countOf(metrics, result::kSteps).value_or(static_cast<std::uint64_t>(run.steps)));
    run.peak = countOf(metrics, result::kPeakReservedBytes).value_or(countOf(metrics, result::kPeakBytes).value_or(0));
    if (const auto error = metrics.find("error"); run.peak == 0 && error != metrics.end() && error->is_object()) {
        // What it held when memory did not suffice, and what it asked for.
        run.peak =
            base::bytesAt(*error, "held_bytes").value_or(0) + base::bytesAt(*error, "requested_bytes").value_or(0);
    }
}

QueuePrice priceQueued(const Experiment& experiment, const Experiment& plan, PlanPricer& pricer,
                       const base::StopToken& stop) {
    QueuePrice out;
    try {
        const Json metrics = planExperiment(plan, WorkloadSinks{}, stop);
        const double step = numberOf(metrics, result::kStepSecondsEstimate).value_or(0);
        out.peak =
            countOf(metrics, result::kPeakReservedBytes).value_or(countOf(metrics, result::kPeakBytes).value_or(0));
        out.budget = countOf(metrics, result::kBudgetBytes).value_or(0);
        out.fits = flagOf(metrics, result::kFits).value_or(true);
        out.seconds = step * plannedSteps(experiment, metrics);
        if (!out.fits) {
            addNearest(out, experiment, plan, step, pricer, stop);
        }
    } catch (const base::Cancelled&) {
        throw;
    } catch (const std::exception& error) {
        out.error = error.what();
    }
    return out;
}

std::optional<std::string> fromLastCheckpoint(const std::string& spec) {
    auto experiment = Experiment::read(spec);
    if (!experiment || !takesOption(*experiment, "resume") || experiment->text("output").empty()) {
        return std::nullopt;
    }
    try {
        experiment->set("resume", findTrainingCheckpoint(experiment->text("output")));
    } catch (const base::BadInput&) {
        return std::nullopt; // it had not written any
    }
    return experiment->jsonText();
}

std::optional<std::string> overItself(const std::string& spec) {
    auto experiment = Experiment::read(spec);
    if (!experiment || !takesOption(*experiment, "overwrite") || experiment->text("output").empty()) {
        return std::nullopt;
    }
    experiment->set("overwrite", true);
    return experiment->jsonText();
}

void goOn(RunQueue& queue, std::int64_t number, const std::optional<std::string>& fromCheckpoint) {
    QueuedRun* run = queue.find(number);
    if (run == nullptr || run->state != QueueState::Paused) {
        return;
    }
    if (fromCheckpoint) {
        const std::optional<QueuePrice> price = run->price; // it holds what it held
        queue.edit(number, *fromCheckpoint);
        run->price = price;
    } else {
        run->evaluations.clear();
        run->value.reset();
        run->step = 0;
    }
    queue.release(number);
}

} // namespace vitrine::engine

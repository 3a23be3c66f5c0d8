// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/step_advice.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/planner/plan_changes.h"
#include "engine/workload/planner/plan_price.h"
#include "engine/workload/planner/plan_sets.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/past_plans.h"
#include "ui/models/planner/plan_words.h"

namespace vitrine::ui {

namespace {

using engine::Experiment;
using engine::PlanChange;

/// Options that leave what is trained as it is.
constexpr std::array<std::string_view, 4> kTechniques = {"tiled_mlp", "checkpoint", "loss_chunks", "optimizer"};
constexpr double kLeastGain = 0.01; ///< of the peak

void priceOffload(StepAdvice& out, engine::PlanPricer& pricer, const Experiment& planned) {
    out.offloaded = planned.text("checkpoint") == "offload";
    const engine::PlanPrice now = pricer.price(planned, {});
    const engine::PlanPrice other =
        pricer.price(edited(planned, {{"checkpoint", std::string(out.offloaded ? "layer" : "offload")}}), {});
    if (other.known()) {
        out.otherwise = other.peak;
        out.host = out.offloaded ? now.host : other.host;
    }
}

} // namespace

std::optional<StepAdvice> stepAdvice(const std::string& specJson, const QString& device, std::int64_t tokens) {
    const auto spec = Experiment::read(specJson);
    if (!spec || !engine::takesOption(*spec, "tiled_mlp")) {
        return std::nullopt;
    }
    try {
        const std::int64_t parts = std::max<std::int64_t>(1, spec->maybeInteger("batch").value_or(1) *
                                                                 spec->maybeInteger("accumulate").value_or(1));
        const Experiment planned = planFor(
            plannedExperiment(*spec, engine::contextOf(*spec).value_or(std::max<std::int64_t>(1, tokens / parts))),
            device);
        engine::PlanPricer pricer;
        const engine::PlanPrice now = pricer.price(planned, {});
        if (!now.known()) {
            return std::nullopt;
        }
        StepAdvice out;
        out.peak = now.peak;
        std::vector<PlanChange> changes = engine::possibleChanges(planned);
        std::erase_if(changes, [&](PlanChange& change) {
            if (std::ranges::find(kTechniques, change.edits.front().key) == kTechniques.end()) {
                return true;
            }
            change.price = pricer.price(edited(planned, change.edits), {});
            return !change.price.known() ||
                   static_cast<double>(change.price.peak) > (1 - kLeastGain) * static_cast<double>(now.peak);
        });
        const auto nearest = std::ranges::min_element(
            changes, {}, [](const PlanChange& change) { return std::pair(change.price.seconds, change.price.peak); });
        if (nearest != changes.end()) {
            out.change = changeName(*nearest, planned);
            out.changed = nearest->price.peak;
            out.place = textOf(nearest->price.place);
        }
        priceOffload(out, pricer, planned);
        return out;
    } catch (const base::BadInput&) {
        return std::nullopt; // nothing that can be planned: the model is gone, or packs what a plan cannot know
    }
}

std::optional<StepBaseline> stepBaseline(const std::string& specJson) {
    const auto spec = Experiment::read(specJson);
    if (!spec || !engine::takesOption(*spec, "tiled_mlp")) {
        return std::nullopt;
    }
    const bool has = spec->text("checkpoint") == "offload" || spec->text("tiled_mlp") == "on";
    Experiment other = edited(*spec, {{"checkpoint", std::string(has ? "layer" : "offload")},
                                      {"tiled_mlp", std::string(has ? "off" : "on")}});
    if (engine::takesOption(other, "output") && other.has("output")) {
        other.unset("output"); // the run's own
    }
    return StepBaseline{has ? QObject::tr("Set up this run without offload and tiled MLP")
                            : QObject::tr("Set up this run with offload and tiled MLP"),
                        other.jsonText()};
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/finetune_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/planning/largest_fit.h"
#include "engine/planning/priced_work.h"
#include "engine/workload/common/plan_parts.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLongestContext = std::int64_t{1} << 22;

PlannedStep finetuneStep(const ModelSource& source, FinetuneData& data) {
    return [&source, &data](const Run& run, kernels::Context& meta) {
        FinetuneModel model(run, source, meta);
        FinetuneLoop loop(run, source, model, data);
        loop.run();
        return loop.stepSeconds();
    };
}

/// Seconds of one step on a Meta context; nothing where it does not fit.
std::optional<double> priceStep(const Run& run, kernels::Context& context, const PlannedStep& step) {
    double seconds = 0;
    const PricedWork priced = priceWork(context, [&](kernels::Context& meta) { seconds = step(run, meta); });
    if (!priced.fits()) {
        run.metrics[result::kOutOfMemory.key] = outOfMemoryJson(*priced.outOfMemory);
        return std::nullopt;
    }
    return seconds;
}

/// The run with one step and without files.
Experiment oneStep(const Experiment& spec) {
    Experiment out = spec;
    out.set("steps", std::int64_t{1});
    out.set("save_every", std::int64_t{0});
    out.set("eval_every", std::int64_t{0});
    return out;
}

/// Metrics of the step that do not depend on the budget, from a context without one.
void addUnboundedStep(const Run& run, kernels::Context& bounded, const PlannedStep& step) {
    const RunDevices unbounded = makePlanContext(run, nullptr, false);
    Json known;
    const std::optional<double> seconds = priceStep(Run{run.spec, run.sinks, run.stop, known}, *unbounded, step);
    addNeed(run.metrics, bounded, *unbounded);
    for (const ResultField* field : {&result::kPeakAt, &result::kCheckpointsOnDevice, &result::kPeakByRole,
                                     &result::kPhaseSeconds, &result::kAfterSleep}) {
        if (known.contains(field->key)) {
            run.metrics[field->key] = known[field->key];
        }
    }
    run.metrics[result::kStepSecondsEstimate.key] = seconds.value_or(0);
}

} // namespace

void addPlannedStep(const Run& run, kernels::Context& context, const PlannedStep& step) {
    std::optional<double> seconds;
    runMeasured(run, context, [&] { seconds = priceStep(run, context, step); });
    run.metrics[result::kFits.key] = seconds.has_value();
    run.metrics[result::kStepSecondsEstimate.key] = seconds.value_or(0);
    if (!seconds) {
        addUnboundedStep(run, context, step);
    }
}

namespace {

/// The longest sequence that fits. Positions beyond the model's own are allowed: training may extend them.
void searchContext(const Run& run, const ModelSource& source) {
    std::uint64_t budget = 0;
    const std::int64_t found = largestFit(
        std::int64_t{1} << 16, kLongestContext,
        [&](std::int64_t length) -> std::optional<std::uint64_t> {
            base::throwIfStopped(run.stop);
            Experiment spec = run.spec;
            spec.set("prompt_length", length);
            const RunDevices context = makePlanContext(run, nullptr);
            budget = context->memory().budget();
            Json ignored;
            WorkloadSinks none;
            const Run probe{spec, none, run.stop, ignored};
            FinetuneData data(probe, source);
            if (!priceStep(probe, *context, finetuneStep(source, data))) {
                return std::nullopt;
            }
            return context->memory().statistics().peakReserved;
        },
        [&] { return budget; });
    run.metrics[result::kMaxContext.key] = found;
    run.metrics[result::kMaxContextLimitedBy.key] = found == kLongestContext ? "search" : "memory";
}

/// A choice of techniques, as options.
struct Technique {
    std::string_view name;
    std::string checkpoint, lossChunks, tiledMlp;
};

/// One technique more from row to row. A number of chunks in the run stays.
std::vector<Technique> techniqueLadder(const Experiment& spec) {
    const std::string asked = spec.text("loss_chunks");
    const std::string chunks = asked == "1" ? "auto" : asked;
    return {{"none", "none", "1", "off"},
            {"+ chunked loss", "none", chunks, "off"},
            {"+ layer checkpointing", "layer", chunks, "off"},
            {"+ offload", "offload", chunks, "off"},
            {"+ tiled MLP", "offload", chunks, "on"}};
}

/// The metrics of a plan with this technique.
Json pricedTechnique(const Run& run, const ModelSource& source, const Technique& technique, FinetuneData& data) {
    Experiment spec = run.spec;
    spec.set("checkpoint", technique.checkpoint);
    spec.set("loss_chunks", technique.lossChunks);
    spec.set("tiled_mlp", technique.tiledMlp);
    spec.set("profile", std::string("off"));
    const WorkloadSinks none;
    Json metrics;
    const Run row{spec, none, run.stop, metrics};
    addPlannedStep(row, *makePlanContext(row, nullptr), finetuneStep(source, data));
    if (run.spec.flag("max_context")) {
        searchContext(row, source);
    }
    return metrics;
}

Json techniqueRow(const Technique& technique, const Json& metrics) {
    Json out = {{"name", technique.name},
                {"checkpoint", technique.checkpoint},
                {"loss_chunks", technique.lossChunks},
                {"tiled_mlp", technique.tiledMlp},
                {"host_bytes", metrics[result::kHostPeakBytes.key]}};
    for (const char* key :
         {"peak_bytes", "peak_at", "fits", "step_seconds_estimate", "checkpoints_on_device", "max_context"}) {
        if (metrics.contains(key)) {
            out[key] = metrics[key];
        }
    }
    return out;
}

/// The present choice, which run.metrics has, and the ladder.
Json techniqueRows(const Run& run, const ModelSource& source, FinetuneData& data) {
    const Experiment& spec = run.spec;
    Json rows = Json::array();
    rows.push_back(techniqueRow(
        {"as chosen", spec.text("checkpoint"), spec.text("loss_chunks"), spec.text("tiled_mlp")}, run.metrics));
    for (const Technique& technique : techniqueLadder(spec)) {
        base::throwIfStopped(run.stop);
        rows.push_back(techniqueRow(technique, pricedTechnique(run, source, technique, data)));
    }
    return rows;
}

} // namespace

void planFinetune(const Run& run) {
    const ModelSource source = openSource(run);
    Experiment spec = oneStep(run.spec);
    const Run once{spec, run.sinks, run.stop, run.metrics};
    if (run.spec.flag("max_context")) {
        searchContext(once, source);
        if (!spec.maybeInteger("prompt_length")) {
            spec.set("prompt_length",
                     std::max<std::int64_t>(run.metrics[result::kMaxContext.key].get<std::int64_t>(), 2));
        }
    }
    FinetuneData data(once, source);
    addPlannedStep(once, *makePlanContext(once, run.sinks.trace), finetuneStep(source, data));
    if (run.spec.flag("techniques")) {
        run.metrics[result::kTechniques.key] = techniqueRows(once, source, data);
    }
}

} // namespace vitrine::engine

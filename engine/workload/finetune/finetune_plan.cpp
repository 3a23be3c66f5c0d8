// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/finetune_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/planning/largest_fit.h"
#include "engine/workload/common/plan_parts.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLongestContext = std::int64_t{1} << 22;

/// One step on a Meta context; nothing where it does not fit.
std::optional<double> priceStep(const Run& run, const ModelSource& source, kernels::Context& context) {
    try {
        FinetuneData data(run, source);
        FinetuneModel model(run, source, context);
        FinetuneLoop loop(run, source, model, data);
        loop.run();
        return loop.stepSeconds();
    } catch (const base::OutOfMemory& error) {
        run.metrics["out_of_memory"] = outOfMemoryJson(error);
        return std::nullopt;
    }
}

/// The run with one step and without files.
Experiment oneStep(const Experiment& spec) {
    Experiment out = spec;
    out.set("steps", std::int64_t{1});
    out.set("save_every", std::int64_t{0});
    out.set("eval_every", std::int64_t{0});
    return out;
}

void addPlan(const Run& run, const ModelSource& source) {
    const std::unique_ptr<kernels::Context> context = makePlanContext(run, run.sinks.trace);
    std::optional<double> seconds;
    runMeasured(run, *context, [&] { seconds = priceStep(run, source, *context); });
    run.metrics["fits"] = seconds.has_value();
    if (!seconds) {
        const std::unique_ptr<kernels::Context> unbounded = makePlanContext(run, nullptr, false);
        Json ignored;
        seconds = priceStep(Run{run.spec, run.sinks, run.stop, ignored}, source, *unbounded);
        addNeed(run.metrics, *context, *unbounded);
    }
    run.metrics["step_seconds_estimate"] = seconds.value_or(0);
}

/// The longest sequence that fits. Positions beyond the model's own are allowed: training may extend them.
void searchContext(const Run& run, const ModelSource& source) {
    std::uint64_t budget = 0;
    const std::int64_t found = largestFit(
        std::int64_t{1} << 16, kLongestContext,
        [&](std::int64_t length) -> std::optional<std::uint64_t> {
            base::throwIfStopped(run.stop);
            Experiment spec = run.spec;
            spec.set("prompt_length", length);
            const std::unique_ptr<kernels::Context> context = makePlanContext(run, nullptr);
            budget = context->memory().budget();
            Json ignored;
            WorkloadSinks none;
            if (!priceStep(Run{spec, none, run.stop, ignored}, source, *context)) {
                return std::nullopt;
            }
            return context->memory().statistics().peakReserved;
        },
        [&] { return budget; });
    run.metrics["max_context"] = found;
    run.metrics["max_context_limited_by"] = found == kLongestContext ? "search" : "memory";
}

} // namespace

void planFinetune(const Run& run) {
    const ModelSource source = openSource(run);
    Experiment spec = oneStep(run.spec);
    const Run once{spec, run.sinks, run.stop, run.metrics};
    if (run.spec.flag("max_context")) {
        searchContext(once, source);
        if (!spec.maybeInteger("prompt_length")) {
            spec.set("prompt_length", std::max<std::int64_t>(run.metrics["max_context"].get<std::int64_t>(), 2));
        }
    }
    addPlan(once, source);
}

} // namespace vitrine::engine

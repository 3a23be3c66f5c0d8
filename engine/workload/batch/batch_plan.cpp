// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <nlohmann/json.hpp>

#include "engine/planning/priced_work.h"
#include "engine/workload/batch/batch.h"
#include "engine/workload/batch/batch_answers.h"
#include "engine/workload/batch/expert_ranks.h"
#include "engine/workload/common/plan_parts.h"
#include "engine/workload/common/rank_metrics.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

using Json = nlohmann::json;

void planBatch(const Run& run) {
    const ModelSource source = openRankSource(run);
    const std::vector<TraceRow> rows = traceOf(run);
    const auto addRanks = [&](kernels::Context& leader, double load) {
        addPlannedRanks(run, source.config, leader, load, [&](const Run& quiet, kernels::Context& meta) {
            serveBatch(quiet, meta, source, rows);
            return quiet.metrics.value(result::kLoadSeconds.key, 0.0);
        });
    };
    const RunDevices context = makePlanContext(run, run.sinks.trace);
    bool fits = true;
    runMeasured(run, *context, [&] {
        const PricedWork priced =
            priceWork(*context, [&](kernels::Context& meta) { serveBatch(run, meta, source, rows); });
        fits = priced.fits();
        if (!fits) {
            run.metrics[result::kOutOfMemory.key] = outOfMemoryJson(*priced.outOfMemory);
        }
    });
    // Requests that are too long for the pool which the budget leaves do not fit; a pool that was asked for is no
    // budget.
    const bool refuses = run.metrics.value(result::kRefusedRequests.key, 0) > 0 && run.spec.integer("kv_pages") == 0;
    fits = fits && !refuses;
    run.metrics[result::kFits.key] = fits;
    if (!fits) {
        const RunDevices unbounded = makePlanContext(run, nullptr, false);
        Json ignored = Json::object();
        WorkloadSinks quiet; // what there is to say was said
        quiet.quiet = true;
        serveBatch(Run{run.spec, quiet, run.stop, ignored}, *unbounded, source, rows);
        addNeed(run.metrics, *context, *unbounded);
        addDevices(run.metrics, source.config, *context, *unbounded);
        addRanks(*unbounded, ignored.value(result::kLoadSeconds.key, 0.0));
    } else {
        addDevices(run.metrics, source.config, *context, *context);
        addRanks(*context, run.metrics.value(result::kLoadSeconds.key, 0.0));
    }
    const auto steps = static_cast<double>(run.metrics.value(result::kDecodeSteps.key, std::int64_t{0}));
    run.metrics[result::kStepSecondsEstimate.key] =
        steps > 0 ? run.metrics.value(result::kSeconds.key, 0.0) / steps : 0.0;
}

} // namespace vitrine::engine

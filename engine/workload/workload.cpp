// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/workload.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/experiment.h"
#include "engine/workload/run_setup.h"
#include "engine/workload/serve.h"

namespace vitrine::engine {

nlohmann::json runExperiment(const nlohmann::json& experiment, const WorkloadSinks& sinks, base::StopToken stop,
                             nlohmann::json* partial) {
    nlohmann::json local;
    nlohmann::json& metrics = partial != nullptr ? *partial : local;
    metrics = nlohmann::json::object();
    const nlohmann::json spec = validateExperiment(experiment, "experiment");
    if (spec.value("plan", false)) {
        return planExperiment(spec, sinks, std::move(stop), &metrics);
    }
    const std::string workload = spec["workload"];
    WorkloadSinks own = sinks;
    if (own.kept != nullptr && (workload == "load" || workload == "bench" || workload == "attention")) {
        // They measure loads and contexts: with nothing left of an earlier run, and leaving nothing.
        own.kept->release();
        own.kept = nullptr;
    }
    const Run run{spec, own, std::move(stop), metrics};
    if (workload == "generate") {
        runGenerate(run);
    } else if (workload == "load") {
        runLoad(run);
    } else if (workload == "logits") {
        runLogits(run);
    } else if (workload == "tokenize") {
        runTokenize(run);
    } else if (workload == "synthesize") {
        runSynthesize(run);
    } else if (workload == "batch") {
        runBatch(run);
    } else if (workload == "serve") {
        runServe(run);
    } else if (workload == "attention") {
        runAttention(run);
    } else {
        runBench(run);
    }
    return metrics;
}

} // namespace vitrine::engine

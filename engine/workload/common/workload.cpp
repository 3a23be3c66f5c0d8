// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/workload.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "engine/workload/common/output_files.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

nlohmann::json runExperiment(const Experiment& experiment, const WorkloadSinks& sinks, base::StopToken stop,
                             nlohmann::json* partial) {
    nlohmann::json local;
    nlohmann::json& metrics = partial != nullptr ? *partial : local;
    metrics = nlohmann::json::object();
    const Workload& workload = experiment.workload();
    checkOutputs(experiment);
    std::vector<FolderLock> locks = lockOutputs(experiment);
    if (!locks.empty()) {
        checkOutputs(experiment); // another run may have ended there in between
    }
    if (experiment.isPlan()) {
        workload.plan({experiment, sinks, std::move(stop), metrics});
        return metrics;
    }
    WorkloadSinks own = sinks;
    if (own.kept != nullptr && workload.startsAfresh) {
        own.kept->release();
        own.kept = nullptr;
    }
    workload.run({experiment, own, std::move(stop), metrics, {}, locks});
    return metrics;
}

nlohmann::json planExperiment(const Experiment& experiment, const WorkloadSinks& sinks, base::StopToken stop,
                              nlohmann::json* partial) {
    return runExperiment(experiment.isPlan() ? experiment : experiment.asPlan(), sinks, std::move(stop), partial);
}

} // namespace vitrine::engine

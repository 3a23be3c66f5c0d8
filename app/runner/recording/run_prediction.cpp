// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/run_prediction.h"

#include <string>

#include "base/error.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/planner/plan_price.h"
#include "kernels/core/backend.h"
#include "kernels/core/device_traits.h"
#include "kernels/cuda/cuda_context.h"

namespace vitrine::app {

namespace {

/// The profile of the GPU that a run takes; empty: none describes it.
std::string profileOfRun(const engine::Experiment& experiment) {
    for (const kernels::CudaDeviceInfo& device : kernels::cudaDevices()) {
        if (device.ordinal == experiment.integer("device")) {
            return kernels::profileOfDevice(device.name);
        }
    }
    return {};
}

} // namespace

std::optional<std::uint64_t> predictedPeak(const engine::Experiment& experiment, const base::StopToken& stop) {
    const engine::Workload& workload = experiment.workload();
    const kernels::Backend backend = engine::backendOf(experiment);
    if (experiment.isPlan() || workload.plan == nullptr || workload.manyAnswers || workload.servesClients ||
        backend == kernels::Backend::Meta) {
        return std::nullopt;
    }
    engine::Experiment planned = experiment.asPlan();
    if (backend == kernels::Backend::Cpu) {
        planned.set("backend", std::string("cpu"));
    } else {
        const std::string profile = profileOfRun(experiment);
        if (profile.empty()) {
            return std::nullopt;
        }
        planned.set("backend", std::string("meta"));
        planned.set("device_profile", profile);
    }
    engine::PlanPricer pricer;
    const engine::PlanPrice& price = pricer.price(planned, stop);
    return price.known() ? std::optional(price.peak) : std::nullopt;
}

} // namespace vitrine::app

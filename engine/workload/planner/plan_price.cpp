// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/planner/plan_price.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

PlanPrice readPrice(const Json& metrics) {
    PlanPrice out;
    out.peak = countOf(metrics, result::kPeakBytes).value_or(0);
    out.reserved = countOf(metrics, result::kPeakReservedBytes).value_or(out.peak);
    out.budget = countOf(metrics, result::kBudgetBytes).value_or(0);
    out.fits = flagOf(metrics, result::kFits).value_or(false);
    out.place = textOf(metrics, result::kPeakAt);
    out.host = countOf(metrics, result::kHostPeakBytes).value_or(0);
    out.seconds = numberOf(metrics, result::kStepSecondsEstimate).value_or(0);
    out.contextLimit = static_cast<std::int64_t>(countOf(metrics, result::kKvCacheContextLimit).value_or(0));
    if (const Json* split = valueOf(metrics, result::kPeakByCategory)) {
        for (int i = 0; i < base::kCategoryCount; ++i) {
            const std::string name(base::categoryName(static_cast<base::MemoryCategory>(i)));
            out.byCategory[static_cast<std::size_t>(i)] = base::bytesAt(*split, name.c_str()).value_or(0);
        }
    }
    if (out.reserved == 0 || out.budget == 0) {
        out.error = "the plan of this workload does not say what it holds";
    }
    return out;
}

} // namespace

const PlanPrice& PlanPricer::price(const Experiment& experiment, const base::StopToken& stop) {
    base::throwIfStopped(stop);
    const auto [at, isNew] = prices_.try_emplace(experiment.jsonText());
    if (!isNew) {
        return at->second;
    }
    try {
        at->second = readPrice(planExperiment(experiment, WorkloadSinks{}, stop));
    } catch (const base::Cancelled&) {
        prices_.erase(at);
        throw;
    } catch (const std::exception& error) {
        at->second.error = error.what();
    }
    return at->second;
}

} // namespace vitrine::engine

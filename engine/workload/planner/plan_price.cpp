// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/planner/plan_price.h"

#include <atomic>
#include <exception>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

/// The members of a field whose lists have a number above zero for the planned step.
std::vector<std::pair<std::string, double>> listsOf(const Json& metrics, const ResultField& field) {
    std::vector<std::pair<std::string, double>> out;
    if (const Json* members = valueOf(metrics, field); members != nullptr && members->is_object()) {
        for (const auto& [name, list] : members->items()) {
            const bool has = list.is_array() && !list.empty() && list.front().is_number();
            if (const double value = has ? list.front().get<double>() : 0; value > 0) {
                out.emplace_back(name, value);
            }
        }
    }
    return out;
}

PlanPrice readPrice(const Json& metrics) {
    PlanPrice out;
    out.peak = countOf(metrics, result::kPeakBytes).value_or(0);
    out.reserved = countOf(metrics, result::kPeakReservedBytes).value_or(out.peak);
    out.budget = countOf(metrics, result::kBudgetBytes).value_or(0);
    out.fits = flagOf(metrics, result::kFits).value_or(false);
    out.place = textOf(metrics, result::kPeakAt);
    out.host = countOf(metrics, result::kHostPeakBytes).value_or(0);
    out.seconds = numberOf(metrics, result::kStepSecondsEstimate).value_or(0);
    out.timesFrom = textOf(metrics, result::kTimesFrom);
    out.contextLimit = static_cast<std::int64_t>(countOf(metrics, result::kKvCacheContextLimit).value_or(0));
    if (const Json* split = valueOf(metrics, result::kPeakByCategory)) {
        for (int i = 0; i < base::kCategoryCount; ++i) {
            const std::string name(base::categoryName(static_cast<base::MemoryCategory>(i)));
            out.byCategory[static_cast<std::size_t>(i)] = base::bytesAt(*split, name.c_str()).value_or(0);
        }
    }
    for (const auto& [role, bytes] : listsOf(metrics, result::kPeakByRole)) {
        out.roles.emplace_back(role, static_cast<std::uint64_t>(bytes));
    }
    out.phases = listsOf(metrics, result::kPhaseSeconds);
    out.longestAnswer = static_cast<std::int64_t>(countOf(metrics, result::kLongestAnswer).value_or(0));
    out.mostAnswers = static_cast<std::int64_t>(countOf(metrics, result::kMaxBatch).value_or(0));
    if (out.reserved == 0 || out.budget == 0) {
        out.error = "the plan of this workload does not say what it holds";
    }
    return out;
}

} // namespace

void forEachPlan(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failed;
    std::mutex mutex;
    const auto loop = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) {
                work(i);
            }
        } catch (...) {
            next = count; // the others need not begin
            const std::lock_guard lock(mutex);
            failed = failed ? failed : std::current_exception();
        }
    };
    if (count > 1) {
        std::thread second(loop);
        loop();
        second.join();
    } else {
        loop();
    }
    if (failed) {
        std::rethrow_exception(failed);
    }
}

const PlanPrice& PlanPricer::price(const Experiment& experiment, const base::StopToken& stop) {
    base::throwIfStopped(stop);
    const std::string key = experiment.jsonText();
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = prices_.find(key); known != prices_.end()) {
            return known->second;
        }
    }
    PlanPrice price;
    try {
        WorkloadSinks sinks;
        sinks.quiet = true;
        price = readPrice(planExperiment(experiment, sinks, stop));
    } catch (const base::Cancelled&) {
        throw;
    } catch (const std::exception& error) {
        price.error = error.what();
    }
    const std::lock_guard lock(mutex_);
    return prices_.try_emplace(key, std::move(price)).first->second; // another thread may have been first
}

void PlanPricer::priceAll(const std::vector<Experiment>& experiments, const base::StopToken& stop) {
    forEachPlan(experiments.size(), [&](std::size_t i) { price(experiments[i], stop); });
}

std::size_t PlanPricer::plansMade() const {
    const std::lock_guard lock(mutex_);
    return prices_.size();
}

} // namespace vitrine::engine

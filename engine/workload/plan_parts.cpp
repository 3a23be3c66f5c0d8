// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/plan_parts.h"

#include <nlohmann/json.hpp>

namespace vitrine::engine {

using Json = nlohmann::json;

Json outOfMemoryJson(const base::OutOfMemory& error) {
    const base::OutOfMemoryDetails& facts = error.facts();
    Json holders = Json::array();
    for (const auto& holder : facts.holders) {
        holders.push_back({{"category", holder.category}, {"layer", holder.layer}, {"bytes", holder.bytes}});
    }
    return {{"message", error.message()},   {"what", facts.what}, {"requested", facts.requested},
            {"budget", facts.budget},       {"held", facts.held}, {"largest_free", facts.largestFree},
            {"holders", std::move(holders)}};
}

void addNeed(Json& metrics, kernels::Context& bounded, kernels::Context& unbounded) {
    addMemoryMetrics(metrics, unbounded);
    const std::uint64_t budget = bounded.memory().budget();
    const std::uint64_t needed = unbounded.memory().statistics().peakReserved;
    metrics["budget_bytes"] = budget;
    metrics["short_by_bytes"] = needed > budget ? needed - budget : 0;
}

} // namespace vitrine::engine

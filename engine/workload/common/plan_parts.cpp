// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/plan_parts.h"

#include <nlohmann/json.hpp>

#include "engine/workload/experiment/results.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

using Json = nlohmann::json;

Json outOfMemoryJson(const base::OutOfMemory& error) {
    const base::OutOfMemoryDetails& details = error.details();
    Json holders = Json::array();
    for (const auto& holder : details.holders) {
        holders.push_back({{"category", holder.category}, {"layer", holder.layer}, {"bytes", holder.bytes}});
    }
    return {{"message", error.message()},     {"what", details.what},   {"requested", details.requested},
            {"budget", details.budget},       {"held", details.held},   {"largest_free", details.largestFree},
            {"holders", std::move(holders)},  {"arena", details.arena}, {"arena_bytes", details.arenaBytes},
            {"arena_idle", details.arenaIdle}};
}

void addNeed(Json& metrics, kernels::Context& bounded, kernels::Context& unbounded) {
    addMemoryMetrics(metrics, unbounded);
    const std::uint64_t budget = bounded.memory().budget();
    const std::uint64_t needed = unbounded.memory().statistics().peakReserved;
    metrics[result::kBudgetBytes.key] = budget;
    metrics[result::kShortByBytes.key] = needed > budget ? needed - budget : 0;
}

} // namespace vitrine::engine

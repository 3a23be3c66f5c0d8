// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/plan_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/integers.h"
#include "base/units.h"
#include "engine/checkpoint/parameter_count.h"
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

void addDevices(Json& metrics, const ModelConfig& config, kernels::Context& bounded, kernels::Context& whole) {
    const ParameterCount parameters = countParameters(config);
    metrics[result::kParameters.key] = parameters.all;
    metrics[result::kActiveParameters.key] = parameters.active;
    const auto bytesOf = [&](base::MemoryCategory category) {
        return whole.memory().statistics().maxByCategory[static_cast<std::size_t>(category)];
    };
    const std::uint64_t weights = bytesOf(base::MemoryCategory::Weights);
    const std::uint64_t cache = bytesOf(base::MemoryCategory::KvCache);
    const std::uint64_t budget = bounded.memory().budget();
    const std::uint64_t reserved = whole.memory().statistics().peakReserved;
    const std::uint64_t own = reserved - std::min(reserved, weights + cache);
    const std::string parts = fmt::format("weights of {}, a KV cache of {}, and {} on each for the work itself",
                                          base::formatBytes(weights), base::formatBytes(cache), base::formatBytes(own));
    if (own >= budget) {
        metrics[result::kDevicesText.key] =
            fmt::format("no number of devices of {}: {}", base::formatBytes(budget), parts);
        return;
    }
    const std::int64_t devices = std::max<std::int64_t>(
        1, base::ceilDivide(static_cast<std::int64_t>(weights + cache), static_cast<std::int64_t>(budget - own)));
    const auto share =
        static_cast<std::uint64_t>(base::ceilDivide(static_cast<std::int64_t>(weights + cache), devices));
    metrics[result::kDevices.key] = devices;
    metrics[result::kDevicesText.key] = fmt::format(
        "{} of {}: {}; {} of each stay free", devices == 1 ? "one device" : fmt::format("{} devices", devices),
        base::formatBytes(budget), parts, base::formatBytes(budget - own - share));
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/rank_metrics.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/workload/experiment/results.h"
#include "kernels/context/context.h"
#include "kernels/context/device_group.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

Json rankRow(kernels::Context& context, int rank, double load = 0) {
    Json row = {{result::kRank.key, rank}};
    const kernels::MemoryStatistics& statistics = context.memory().statistics();
    row[result::kPeakBytes.key] = statistics.peak;
    row[result::kPeakByCategory.key] = categoryJson(statistics.peakByCategory);
    if (context.can().virtualTime) {
        row[result::kSeconds.key] = static_cast<double>(context.clock().now()) * 1e-9 - load;
        row[result::kCommunicationSeconds.key] = context.exchangeSeconds();
    }
    return row;
}

/// Parts of the time of the slowest rank.
void addShares(Json& rows) {
    double slowest = 0;
    for (const Json& row : rows) {
        slowest = std::max(slowest, row.value(result::kSeconds.key, 0.0));
    }
    for (Json& row : rows) {
        if (slowest > 0 && row.contains(result::kSeconds.key)) {
            row[result::kTimeShare.key] = row.value(result::kSeconds.key, 0.0) / slowest;
            row[result::kCommunicationShare.key] = row.value(result::kCommunicationSeconds.key, 0.0) / slowest;
        }
    }
}

} // namespace

void addRankMetrics(Json& metrics, kernels::Context& leader) {
    kernels::DeviceGroup* const group = leader.group();
    if (group == nullptr) {
        return;
    }
    Json rows = Json::array();
    for (int rank = 0; rank < group->size(); ++rank) {
        rows.push_back(rankRow(group->rank(rank), rank));
    }
    addShares(rows);
    metrics[result::kRanks.key] = std::move(rows);
}

void addPlannedRanks(const Run& run, const ModelConfig& config, kernels::Context& leader, double leaderLoad,
                     const std::function<double(const Run& quiet, kernels::Context& meta)>& price) {
    const ParallelShape shape = parallelShape(run.spec);
    if (shape.ranks() == 1) {
        return;
    }
    const ShardPlan plan(config, shape);
    Json rows = Json::array();
    std::map<std::string, Json> kinds;
    kinds[plan.kindOf(0)] = rankRow(leader, 0, leaderLoad);
    for (int rank = 0; rank < shape.ranks(); ++rank) {
        Json& row = kinds[plan.kindOf(rank)];
        if (row.is_null()) {
            WorkloadSinks sinks; // what there is to say was said
            sinks.quiet = true;
            Json ignored = Json::object();
            const RunDevices context = makePlanContext(run, nullptr, false, rank);
            const double load = price(Run{run.spec, sinks, run.stop, ignored}, *context);
            row = rankRow(*context, rank, load);
        }
        rows.push_back(row);
        rows.back()[result::kRank.key] = rank;
    }
    addShares(rows);
    run.metrics[result::kRanks.key] = std::move(rows);
    run.metrics[result::kDevices.key] = shape.ranks();
    run.metrics.erase(std::string(result::kDevicesText.key));
}

} // namespace vitrine::engine

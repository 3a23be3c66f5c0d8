// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/rank_timelines.h"

#include <algorithm>

#include "profiler/record/streams.h"

namespace vitrine::profiler {

RankTimelines::RankTimelines(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
        builders_.push_back(std::make_unique<RunTimelineBuilder>(static_cast<base::DeviceRank>(rank)));
    }
}

void RankTimelines::add(const base::ColumnChunk& chunk) {
    for (const std::unique_ptr<RunTimelineBuilder>& builder : builders_) {
        builder->add(chunk);
    }
}

std::vector<std::shared_ptr<const RunTimeline>> RankTimelines::snapshots() {
    std::vector<std::shared_ptr<const RunTimeline>> out;
    for (const std::unique_ptr<RunTimelineBuilder>& builder : builders_) {
        out.push_back(builder->snapshot());
    }
    return out;
}

int RankTimelines::highestRank(const base::ColumnChunk& chunk) {
    EventBatch batch;
    decodeInto(chunk, batch);
    int highest = 0;
    const auto look = [&](const auto& events) {
        for (const auto& event : events) {
            highest = std::max<int>(highest, event.device);
        }
    };
    look(batch.scopeBegins);
    look(batch.counters);
    for (const auto& allocation : batch.allocations) {
        highest = std::max<int>(highest, allocation.event.device);
    }
    for (const auto& replay : batch.replays) {
        highest = std::max<int>(highest, replay.event.device);
    }
    return highest;
}

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The timelines of all ranks of a run: a run on several devices has one for each.

#include <memory>
#include <vector>

#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {

class RankTimelines {
public:
    /// `ranks`: at least 1. Chunks of further ranks concern none of them.
    explicit RankTimelines(int ranks);

    int ranks() const { return static_cast<int>(builders_.size()); }
    /// As RunTimelineBuilder::add, for every rank.
    void add(const base::ColumnChunk& chunk);
    /// By rank; everything that was added.
    std::vector<std::shared_ptr<const RunTimeline>> snapshots();

    /// The highest rank that a chunk's events name; 0 where they name none. Throws BadInput on damaged chunks.
    static int highestRank(const base::ColumnChunk& chunk);

private:
    std::vector<std::unique_ptr<RunTimelineBuilder>> builders_;
};

} // namespace vitrine::profiler

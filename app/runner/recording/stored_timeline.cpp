// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/stored_timeline.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/column_chunk.h"
#include "profiler/timeline/rank_timelines.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::app {

namespace {

/// Calls take(chunk) for all chunks of a run, stream by stream, until it returns false.
template <class Take> void eachChunk(const sessions::SessionFile& session, sessions::RunId run, const Take& take) {
    constexpr std::size_t kBatch = 64;
    for (const std::string& stream : session.streams(run)) {
        std::uint64_t next = 0;
        for (auto batch = session.chunks(run, stream, next, kBatch); !batch.empty();
             batch = session.chunks(run, stream, next, kBatch)) {
            for (const base::ColumnChunk& chunk : batch) {
                if (!take(chunk)) {
                    return;
                }
                next = chunk.sequence + 1;
            }
        }
    }
}

} // namespace

std::shared_ptr<const profiler::RunTimeline> loadShortTimeline(const sessions::SessionFile& session,
                                                               sessions::RunId run, std::uint64_t mostRows) {
    profiler::RunTimelineBuilder builder;
    std::uint64_t rows = 0;
    eachChunk(session, run, [&](const base::ColumnChunk& chunk) {
        rows += chunk.rows;
        if (rows <= mostRows) {
            builder.add(chunk);
        }
        return rows <= mostRows;
    });
    return rows > mostRows ? nullptr : builder.snapshot();
}

std::shared_ptr<const profiler::RunTimeline> loadTimeline(const sessions::SessionFile& session, sessions::RunId run) {
    return loadShortTimeline(session, run, std::numeric_limits<std::uint64_t>::max());
}

std::vector<std::shared_ptr<const profiler::RunTimeline>> loadRankTimelines(const sessions::SessionFile& session,
                                                                            sessions::RunId run) {
    int highest = 0;
    eachChunk(session, run, [&](const base::ColumnChunk& chunk) {
        highest = std::max(highest, profiler::RankTimelines::highestRank(chunk));
        return true;
    });
    profiler::RankTimelines timelines(highest + 1);
    eachChunk(session, run, [&](const base::ColumnChunk& chunk) {
        timelines.add(chunk);
        return true;
    });
    return timelines.snapshots();
}

} // namespace vitrine::app

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/stored_timeline.h"

#include <limits>
#include <string>
#include <vector>

#include "base/column_chunk.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::app {

std::shared_ptr<const profiler::RunTimeline> loadShortTimeline(const sessions::SessionFile& session,
                                                               sessions::RunId run, std::uint64_t mostRows) {
    constexpr std::size_t kBatch = 64;
    profiler::RunTimelineBuilder builder;
    std::uint64_t rows = 0;
    for (const std::string& stream : session.streams(run)) {
        std::uint64_t next = 0;
        for (auto batch = session.chunks(run, stream, next, kBatch); !batch.empty();
             batch = session.chunks(run, stream, next, kBatch)) {
            for (const base::ColumnChunk& chunk : batch) {
                rows += chunk.rows;
                if (rows > mostRows) {
                    return nullptr;
                }
                builder.add(chunk);
                next = chunk.sequence + 1;
            }
        }
    }
    return builder.snapshot();
}

std::shared_ptr<const profiler::RunTimeline> loadTimeline(const sessions::SessionFile& session, sessions::RunId run) {
    return loadShortTimeline(session, run, std::numeric_limits<std::uint64_t>::max());
}

} // namespace vitrine::app

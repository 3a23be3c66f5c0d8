// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Builds timelines from a run's chunks.

#include <memory>

#include "base/column_chunk.h"
#include "base/trace.h"

namespace vitrine::profiler {

class RunTimeline;

/// Builds timelines from chunks, in pieces, as they arrive; snapshot() is cheap enough for 30 Hz.
class RunTimelineBuilder {
public:
    /// `rank`: of the device whose timeline is wanted. A run on several devices has a builder for each; what concerns
    /// the run as a whole (tokens, requests, gaps) is in all of their timelines.
    explicit RunTimelineBuilder(base::DeviceRank rank = 0);
    ~RunTimelineBuilder();
    RunTimelineBuilder(const RunTimelineBuilder&) = delete; // large
    RunTimelineBuilder& operator=(const RunTimelineBuilder&) = delete;

    /// Takes a chunk of any stream that the recorder writes; ignores unknown ones. Throws BadInput on damaged chunks.
    void add(const base::ColumnChunk& chunk);
    /// Everything that was added.
    std::shared_ptr<const RunTimeline> snapshot();
    /// While a saved run is being read stream by stream: leaves out what waits for streams that have not come, which
    /// snapshot() would have to take back and redo. Ends with one snapshot().
    std::shared_ptr<const RunTimeline> preview();

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::profiler

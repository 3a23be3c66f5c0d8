// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Builds the memory facet of a timeline. Not thread-safe.

#include <memory>
#include <optional>
#include <vector>

#include "base/column_chunk.h"
#include "profiler/timeline/memory_facet.h"

namespace vitrine::profiler {

class MemoryBuilder {
public:
    /// Records of other devices only keep their places in the order.
    explicit MemoryBuilder(base::DeviceRank rank) : rank_(rank), history_(rank) {}

    void add(const EventBatch& batch);
    /// Takes a chunk of the stored pyramid; false for other streams. Throws BadInput on damaged chunks.
    bool addPyramid(const base::ColumnChunk& chunk);

    MemoryHistory& history() { return history_; }
    base::TimeNs latest() const { return latest_; } ///< end of the last event, -1: none
    /// `preview`: without what waits for records that have not come.
    MemoryParts parts(bool preview, base::TimeNs end, std::optional<base::TimeNs> incompleteFrom);

private:
    void see(base::TimeNs time) { latest_ = std::max(latest_, time); }

    base::DeviceRank rank_;
    MemoryHistory history_;
    SharedVector<base::OutOfMemoryEvent> outOfMemory_;
    SharedVector<FailurePlace> failures_;
    StoredLevels stored_;
    std::shared_ptr<const StoredPyramid> chosen_; ///< of `stored_`; null when that changed
    bool eventsCover_ = false;                    ///< everything was read once: the events lead from then on
    base::TimeNs latest_ = -1;
};

} // namespace vitrine::profiler

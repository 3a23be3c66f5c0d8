// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Answers from the pyramid nodes of a session file, for the time before the events themselves have been read. A node is
// not opened: one that reaches into a window counts whole, so answers are exact only to the borders of leaves.

#include <cstdint>
#include <vector>

#include "profiler/record/streams.h"
#include "profiler/timeline/peaks.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

/// Nodes of the finest level that covers the most events, by first event.
using StoredPyramid = std::vector<PyramidNode>;

/// The nodes of all levels as they come, in any order. A level of more than kMaxNodes is forgotten: the one above it
/// answers as well on any screen, and the pyramid of a long run takes no more memory than its events.
class StoredLevels {
public:
    static constexpr std::size_t kMaxNodes = 1 << 16;

    void add(std::size_t level, const std::vector<PyramidNode>& nodes);
    std::uint64_t events() const; ///< that best() covers
    StoredPyramid best() const;

private:
    struct Level {
        StoredPyramid nodes;
        std::uint64_t events = 0;
        bool forgotten = false;
    };
    const Level* bestLevel() const;

    std::vector<Level> levels_;
};

std::uint64_t storedEvents(const StoredPyramid& nodes);
std::vector<MemoryColumn> storedColumns(const StoredPyramid& nodes, base::TimeNs begin, base::TimeNs end, int columns);
base::CategoryBytes storedAt(const StoredPyramid& nodes, base::TimeNs time);
std::vector<CurvePiece> storedCurve(const StoredPyramid& nodes);

} // namespace vitrine::profiler

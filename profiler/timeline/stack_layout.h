// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Stack layout of the allocation view: device blocks placed from 0 upwards as if memory had no holes to keep.
// At its birth a block takes a free gap that fits well, else the top; it stays there until its death. Blocks that live
// at the same time never overlap.

#include <atomic>
#include <cstdint>
#include <vector>

#include "profiler/timeline/history.h"
#include "profiler/timeline/shape_index.h"

namespace vitrine::profiler {

struct StackLayout {
    std::vector<std::uint64_t> addresses; ///< of each row; blocks of host memory get 0
    std::uint64_t extent = 0;             ///< end of the highest block
    ShapeIndexView shapes;                ///< over these addresses, of the blocks that died
};

/// One pass over the events; `eventsDone` counts them, to show progress.
StackLayout stackLayout(const HistoryViews& history, std::atomic<std::uint64_t>& eventsDone);

} // namespace vitrine::profiler

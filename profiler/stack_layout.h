// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Stack layout of the allocation view: device blocks placed from 0 upwards as if memory had no holes to keep.
// At its birth a block takes a free gap that fits well, else the top; it stays there until its death. Blocks that live at
// the same time never overlap.

#include <cstdint>
#include <vector>

#include "profiler/history.h"
#include "profiler/shape_index.h"

namespace vitrine::profiler {

/// Address of each row; blocks of host memory get 0.
std::vector<std::uint64_t> stackRows(const HistoryViews& history);

/// The shape index over stacked addresses, of the blocks that died.
ShapeIndexView stackShapes(const HistoryViews& history, const std::vector<std::uint64_t>& stack);

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// "Alive at 10.93 s": what holds the memory at one instant, as a tree of groups, their parts and single
// blocks: profiler/analysis/memory_groups.h in words and cells.

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// Columns Name, Size, Share, Blocks; the last row is the total. Keys: an allocation's id for a block, a hash with the
/// top bit set for a group. Any thread. `limit` blocks at most are listed under one group, the rest in one row.
FlatTreePtr aliveTree(const profiler::RunTimeline& timeline, base::TimeNs time, profiler::GroupBy groupBy,
                      std::size_t limit = 200);

/// The same at the moment of a failure, before what it held was freed.
FlatTreePtr heldTree(const profiler::RunTimeline& timeline, std::size_t failure, profiler::GroupBy groupBy,
                     std::size_t limit = 200);

/// "mlp.experts.gate_up, layer 3" for "model.layers.3.mlp.experts.gate_up.weight": short enough for a table.
QString shortTensorName(std::string_view name);

/// "(1, 98304, 201088) bfloat16"; of a packed weight also its format: "(2048, 384) bytes of INT4, groups of 128".
/// Without a shape the type alone; empty where nothing is known. `row` is one of the timeline.
QString tensorText(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row);

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What holds the memory at one instant, as a tree: groups by category, layer, op or dtype, and in each group its parts in
// plain words: "experts, MXFP4", "embedding, lm_head", "layer inputs 0 to 23".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/memory_timeline.h"

namespace vitrine::profiler {

struct MemoryGroup {
    std::string name;
    std::uint64_t bytes = 0;
    std::size_t blocks = 0;
    double share = 0;                             ///< of the root's bytes
    std::optional<base::MemoryCategory> category; ///< when all blocks have the same
    std::vector<std::size_t> rows;                ///< allocations, largest first; of parts only
    std::vector<MemoryGroup> children;            ///< largest first
};

/// Device blocks alive at `time`. The root is called "total"; its children are the groups, theirs the parts.
MemoryGroup groupAlive(const MemoryTimeline& timeline, base::TimeNs time, GroupBy by);

/// The same after the first `count` events.
MemoryGroup groupAliveAtEvent(const MemoryTimeline& timeline, std::uint64_t count, GroupBy by);

/// The same of any device rows, for instance of those that a range made.
MemoryGroup groupRows(const MemoryTimeline& timeline, const std::vector<std::size_t>& rows, GroupBy by);

/// The part of a model that a weight belongs to: "experts, MXFP4", "router", "attention", "embedding, lm_head", "norms",
/// "dense MLP", "LoRA A and B", "other weights". `dtype` is a kernels::DType.
std::string weightPart(std::string_view tensor, std::uint8_t dtype);

/// A tensor's name in words without its layer: "model.layers.3.layer_input" is "layer input".
std::string plainName(std::string_view tensor);

} // namespace vitrine::profiler

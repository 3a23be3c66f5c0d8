// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What holds the memory at one instant, as a tree: groups by category, layer, op or dtype, and in each group its parts
// in plain words: "experts, BF16", "embedding, lm_head", "layer inputs 0 to 23".

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

class RunTimeline;

/// Sorts allocations into groups: "layer 11", "ExpertMlp", "bfloat16", "INT4, groups of 128", "weights". Remembers what
/// it looked up, so that millions of rows cost little. One thread.
class Grouping {
public:
    Grouping(const RunTimeline& timeline, GroupBy by) : timeline_(timeline), places_(timeline), by_(by) {}
    std::size_t groupOf(const AllocationRow& row);
    const std::string& name(std::size_t group) const { return names_[group]; }
    std::size_t size() const { return names_.size(); }

private:
    std::string nameOf(const AllocationRow& row);
    std::size_t intern(std::string name);

    const RunTimeline& timeline_;
    ScopePlaces places_;
    GroupBy by_;
    std::vector<std::string> names_;
    std::map<std::string, std::size_t, std::less<>> byName_;
    std::unordered_map<std::uint64_t, std::size_t> byKey_;
};

struct MemoryGroup {
    std::string name;
    std::string kind; ///< its name without the numbers that change over time: "layer input"; unique among its siblings
    std::uint64_t bytes = 0;
    std::size_t blocks = 0;                                  ///< 0: bytes that are known as a sum only
    double share = 0;                                        ///< of the root's bytes
    std::optional<base::MemoryCategory> category;            ///< when all blocks have the same
    base::MemoryCategory most = base::MemoryCategory::Other; ///< the category of the most bytes
    std::vector<std::size_t> rows;                           ///< allocations, largest first; of parts only
    std::vector<MemoryGroup> children;                       ///< largest first
};

/// What the device holds at `time`. The root is called "total"; its children are the groups, theirs the parts. Its
/// bytes are the total of that time: what no block accounts for is in the group of its category, else in "untracked".
MemoryGroup groupAlive(const RunTimeline& timeline, base::TimeNs time, GroupBy by);

/// The same after the first `count` events.
MemoryGroup groupAliveAtEvent(const RunTimeline& timeline, std::uint64_t count, GroupBy by);

/// How the packed weight is stored that a tensor belongs to: "INT4, groups of 128". Empty: it belongs to none, or the
/// run is of an earlier version and does not say it.
std::string formatText(const RunTimeline& timeline, const AllocationRow& row);

/// The part of a model that a weight belongs to: "experts, BF16", "router", "attention", "embedding, lm_head", "norms",
/// "dense MLP", "LoRA A and B", "other weights". `type` is that of the weight's elements, or empty: "BF16".
std::string weightPart(std::string_view tensor, std::string_view type);

/// The op that a tensor of scratch belongs to: an op's scratch is made before its scope begins and carries its name,
/// "ExpertMlp.scratch". Empty: it is no scratch.
std::string scratchOwner(std::string_view tensor);

/// A tensor's name in words without its layer: "model.layers.3.layer_input" is "layer input".
std::string plainName(std::string_view tensor);

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a timeline keeps of blocks and of steps that were replayed from a template. Values; no threads, no ownership.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "base/trace.h"
#include "profiler/record/live_blocks.h"
#include "profiler/record/memory_step.h"

namespace vitrine::profiler {

inline constexpr std::uint32_t kNoReplay = std::numeric_limits<std::uint32_t>::max();

/// What does not change about a block. Of a template: id and scope are relative to the replay.
struct AllocationDef {
    std::uint64_t id = 0, address = 0, bytes = 0, scope = 0;
    std::uint32_t name = 0;
    base::MemoryCategory category = base::MemoryCategory::Other;
    base::MemorySpace space = base::MemorySpace::Device;
    std::uint8_t dtype = 0, dimensions = 0;
    std::uint32_t shape = 0;  ///< index of the shape
    std::uint32_t format = 0; ///< name of it; 0: none

    MemoryChange change(bool death) const { return {bytes, space, category, death}; }
};

/// Device memory with an address: what the context and libraries hold has none.
inline bool hasAddress(const AllocationDef& def) {
    return def.space == base::MemorySpace::Device && def.category != base::MemoryCategory::Untracked;
}

struct AllocationLife {
    base::TimeNs born = 0;
    std::uint32_t def = 0;
    std::uint32_t replay = kNoReplay;
};

struct ReplayInfo {
    base::TimeNs begin = 0, end = 0;
    std::uint64_t firstId = 0, parent = 0;
    std::uint32_t step = 0;  ///< index of the template
    std::uint32_t order = 0; ///< of the record of the replay
    std::int32_t index = -1;
};

/// A birth or death of a template that is kept once for all its replays.
struct TemplateEvent {
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    base::TimeNs time = 0;
    MemoryChange change;
    std::uint64_t id = 0;        ///< of the block, relative to the replay
    std::uint32_t def = 0;       ///< of the block
    std::uint32_t births = 0;    ///< births before this event
    std::uint32_t outliving = 0; ///< of them, blocks that outlive the step
    std::uint32_t partner =
        kNone; ///< the death of a birth, and the birth of a death; kNone: the block outlives the step

    bool outlives() const { return partner == kNone; }
};

/// What one decoded template holds.
struct TemplateInfo {
    struct Scope {
        base::ScopeBeginEvent begin;
        base::TimeNs end = -1;
        std::uint64_t bytes = 0, flops = 0;
    };
    std::uint32_t id = 0;
    base::TimeNs duration = 0;
    std::uint64_t idCount = 0;
    /// Blocks are indices of AllocationDef. Empty when `events` stands for it.
    std::vector<TemplateMemory> memory;
    /// Births and deaths in order of time, when each death belongs to one birth before it; else empty.
    std::vector<TemplateEvent> events;
    std::vector<std::uint32_t> births; ///< which of `events` are births
    std::vector<Scope> scopes;
    bool scopesRise = true; ///< `scopes` stand by begin
    std::vector<base::SpanEvent> spans;

    std::size_t memoryEvents() const { return memory.size() + events.size(); }
};

/// The births and deaths of a template, for TemplateInfo::events. None when they cannot be read in place: their times
/// fall, an id comes twice, or a death has no birth before it. `birthOf(block)` tells what the birth of a block
/// changes.
std::vector<TemplateEvent> templateEvents(const std::vector<TemplateMemory>& memory,
                                          const std::function<MemoryChange(std::uint32_t)>& birthOf);

using TemplateInfos = std::vector<std::shared_ptr<const TemplateInfo>>;

/// A time inside a template at its place in a replay.
inline base::TimeNs expandTime(const ReplayInfo& replay, base::TimeNs duration, base::TimeNs relative) {
    return expandTime(replay.begin, replay.end, duration, relative);
}

} // namespace vitrine::profiler

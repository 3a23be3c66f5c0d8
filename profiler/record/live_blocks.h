// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which blocks of memory are alive: the one answer that recording, parts of a long run and timelines build on. Blocks
// are known by their ids; a step that was replayed is expanded to the births and deaths of its template. Not
// thread-safe.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "profiler/record/id_map.h"

namespace vitrine::profiler {

/// The living blocks of a run, by id. `Block`: what the owner wants to know of a block. `Death`: what it wants to know
/// of a death that was reported before its birth, as threads whose clocks disagree do.
template <class Block, class Death> class LiveBlocks {
public:
    /// A block came to life. Returns its death when that was reported before: the owner applies it now.
    std::optional<Death> birth(std::uint64_t id, const Block& block) {
        alive_.put(id, block);
        return early_.size() == 0 ? std::nullopt : early_.take(id);
    }
    /// A block died. Returns it; nothing when no birth was reported so far: the death is kept until then.
    std::optional<Block> death(std::uint64_t id, const Death& death) {
        std::optional<Block> block = alive_.take(id);
        if (!block) {
            early_.put(id, death);
        }
        return block;
    }
    /// The death of `id` that waits for its birth, removed.
    std::optional<Death> takeEarlyDeath(std::uint64_t id) {
        return early_.size() == 0 ? std::nullopt : early_.take(id);
    }

    /// Takes back a birth, and a death: of owners that go back in time.
    void unbirth(std::uint64_t id) { alive_.take(id); }
    void undeath(std::uint64_t id, const Block& block) { alive_.put(id, block); }

    /// Every living block as take(id, block), by id.
    template <class Take> void each(Take take) const {
        std::map<std::uint64_t, const Block*> byId;
        alive_.each([&byId](std::uint64_t id, const Block& block) { byId[id] = &block; });
        for (const auto& [id, block] : byId) {
            take(id, *block);
        }
    }

private:
    IdMap<Block> alive_;
    IdMap<Death> early_;
};

/// A time inside a template, at its place in a replay of [begin, end]. Times scale linearly.
inline base::TimeNs expandTime(base::TimeNs begin, base::TimeNs end, base::TimeNs duration, base::TimeNs relative) {
    if (duration <= 0) {
        return begin;
    }
    relative = std::min(relative, duration); // work that a step started may end after it
    const base::TimeNs length = end - begin;
    if (length == duration) {
        return begin + relative;
    }
    if (static_cast<std::uint64_t>(relative | length) < std::uint64_t{1} << 31) {
        return begin + relative * length / duration; // the usual case, and several times as fast
    }
    // Rounds down; 128 bits because both factors may be days in nanoseconds.
    return begin + static_cast<base::TimeNs>(static_cast<__int128>(relative) * length / duration);
}

/// A birth or death of a template.
struct TemplateMemory {
    base::TimeNs time = 0;
    bool death = false;
    std::uint32_t block = 0; ///< of a birth: what the owner calls its block
    std::uint64_t id = 0;    ///< relative to the replay
};

/// The births and deaths of a template in its order. `keep(event)` takes a birth and returns what the owner calls its
/// block.
template <class Keep> std::vector<TemplateMemory> memoryOf(const base::StepTemplate& step, Keep keep) {
    std::vector<TemplateMemory> memory;
    for (const base::TraceEvent& event : step.events) {
        if (const auto* birth = std::get_if<base::AllocationEvent>(&event)) {
            memory.push_back({birth->time, false, keep(*birth), birth->id});
        } else if (const auto* death = std::get_if<base::FreeEvent>(&event)) {
            memory.push_back({death->time, true, 0, death->id});
        }
    }
    return memory;
}

/// The births and deaths of a replay of [begin, end] as take(time, id, what).
template <class Take>
void expandMemory(const std::vector<TemplateMemory>& memory, base::TimeNs duration, base::TimeNs begin,
                  base::TimeNs end, std::uint64_t firstId, Take take) {
    for (const TemplateMemory& item : memory) {
        take(expandTime(begin, end, duration, item.time), firstId + item.id, item);
    }
}

} // namespace vitrine::profiler

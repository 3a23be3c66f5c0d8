// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory history of a run in canonical order (time, then order of recording), with step templates expanded.
//
// Records may come in any order. settle() merges what came: it takes back the events after the earliest new one and
// applies everything again from there, so a live tail costs what is new and a little overlap.
// A block is described once (AllocationDef); a block of a replayed step is a row of 28 bytes that points to its
// template's. Not thread-safe; the views are immutable.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/trace.h"
#include "profiler/record/live_blocks.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"
#include "profiler/timeline/address_ranges.h"
#include "profiler/timeline/pyramid.h"
#include "profiler/timeline/shape_index.h"

namespace vitrine::profiler {

inline constexpr std::uint32_t kNoReplay = std::numeric_limits<std::uint32_t>::max();

/// More events than this in one run are refused: a damaged file must not ask for all memory.
inline constexpr std::uint64_t kMaxExpandedEvents = std::uint64_t{1} << 28;

/// What does not change about a block. Of a template: id and scope are relative to the replay.
struct AllocationDef {
    std::uint64_t id = 0, address = 0, bytes = 0, scope = 0;
    std::uint32_t name = 0;
    base::MemoryCategory category = base::MemoryCategory::Other;
    base::MemorySpace space = base::MemorySpace::Device;
    std::uint8_t dtype = 0, dimensions = 0;
    std::uint32_t shape = 0; ///< index of the shape
};

/// Device memory with an address: what the context and libraries hold has none.
inline bool hasAddress(const AllocationDef& def) {
    return def.space == base::MemorySpace::Device && def.category != base::MemoryCategory::Untracked;
}

using Dims = std::array<std::int64_t, base::kMaxTraceDimensions>;

struct AllocationLife {
    base::TimeNs born = 0;
    std::uint32_t def = 0;
    std::uint32_t replay = kNoReplay;
};

struct ReplayInfo {
    base::TimeNs begin = 0, end = 0;
    std::uint64_t firstId = 0, parent = 0;
    std::uint32_t step = 0; ///< index of the template
    std::int32_t index = -1;
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
    std::vector<TemplateMemory> memory; ///< blocks are indices of AllocationDef
    std::vector<Scope> scopes;          ///< by begin
    std::vector<base::SpanEvent> spans;
};

/// A time inside a template at its place in a replay.
inline base::TimeNs expandTime(const ReplayInfo& replay, base::TimeNs duration, base::TimeNs relative) {
    return expandTime(replay.begin, replay.end, duration, relative);
}

/// Rows are summed up by this many, so that finding the living ones skips the rest.
inline constexpr std::size_t kLivesRows = 64;

struct HistoryViews {
    EventColumns events;
    BlockView<std::uint32_t, EventColumns::kBlock> orders; ///< of each event's record
    PyramidView device, host;
    BlockView<AllocationDef, 512> defs;
    BlockView<AllocationLife, 1024> rows;
    BlockView<base::TimeNs, 512> freed;
    BlockView<Dims, 64> shapes;
    BlockView<ReplayInfo, 256> replays;
    std::vector<std::shared_ptr<const TemplateInfo>> templates;
    ShapeIndexView blockShapes;
    AddressMap addresses;

    /// For each kLivesRows rows: alive to the end, the latest death of the others, and between which ids all lie.
    struct Lives {
        std::uint32_t open = 0;
        base::TimeNs latest = std::numeric_limits<base::TimeNs>::min();
        std::uint64_t lowestId = std::numeric_limits<std::uint64_t>::max(), highestId = 0;
    };
    std::vector<Lives> lives;
};

class MemoryHistory {
public:
    /// Records of other devices only keep their places in the order.
    explicit MemoryHistory(base::DeviceRank rank) : rank_(rank) {}

    void addAllocations(const std::vector<Ordered<base::AllocationEvent>>& events);
    void addFrees(const std::vector<Ordered<base::FreeEvent>>& events);
    void addTemplates(const std::vector<std::shared_ptr<const base::StepTemplate>>& steps);
    void addReplays(const std::vector<Ordered<base::StepReplayedEvent>>& events);

    /// Replays whose template is known since the last call, as indices.
    std::vector<std::uint32_t> takeNewReplays();
    const ReplayInfo& replay(std::uint32_t index) const { return replays_[index]; }
    const TemplateInfo& templateOf(const ReplayInfo& replay) const { return *templates_[replay.step]; }

    /// Applies what was added. With `onlyUnbroken`, records after a gap in the order wait for what fills it.
    void settle(bool onlyUnbroken);

    std::uint64_t events() const { return times_.size(); }
    HistoryViews views();

private:
    /// A record on its way into the history. replay: kNoReplay a birth reported by itself, kDeath a death, else of a
    /// replay.
    struct Record {
        base::TimeNs time = 0;
        std::uint32_t order = 0;
        std::uint32_t replay = kNoReplay;
        std::uint64_t payload = 0; ///< birth: def; death: id
        bool death() const { return replay == kDeath; }
    };
    static constexpr std::uint32_t kDeath = kNoReplay - 1;
    static bool earlier(const Record& a, const Record& b) {
        return a.time != b.time ? a.time < b.time : a.order < b.order;
    }

    std::uint32_t addDef(const base::AllocationEvent& event);
    std::uint32_t shapeIndex(const base::AllocationEvent& event);
    void expand(std::uint32_t replay);
    void see(std::uint64_t order);
    void apply(const Record& record);
    Record takeBack();
    void takeBackTo(const Record& first, std::vector<Record>& again);
    std::uint64_t idOf(const AllocationLife& row) const;
    void putEvent(base::TimeNs time, MemoryChange step, std::uint32_t row, std::uint32_t order);

    base::DeviceRank rank_;

    // Waiting.
    std::vector<Record> births_, deaths_, expanded_;
    struct WaitingReplay {
        Ordered<base::StepReplayedEvent> event;
    };
    std::vector<WaitingReplay> waiting_;
    std::vector<std::uint32_t> newReplays_;
    std::vector<bool> seen_; ///< orders that came
    std::uint64_t unbroken_ = 0;
    std::uint64_t expandedEvents_ = 0;

    // The history.
    SegmentedVector<base::TimeNs, EventColumns::kBlock> times_;
    SegmentedVector<MemoryChange, EventColumns::kBlock> steps_;
    SegmentedVector<std::uint32_t, EventColumns::kBlock> eventRows_;
    SegmentedVector<std::uint32_t, EventColumns::kBlock> orders_;
    PyramidBuilder device_{MemorySide::Device}, host_{MemorySide::Host};
    SegmentedVector<AllocationDef, 512> defs_;
    SegmentedVector<AllocationLife, 1024> rows_;
    SegmentedVector<base::TimeNs, 512> freed_;
    std::vector<HistoryViews::Lives> lives_;
    SegmentedVector<Dims, 64> shapes_;
    std::unordered_map<std::uint64_t, std::uint32_t> shapeByHash_;
    SegmentedVector<ReplayInfo, 256> replays_;
    std::vector<std::shared_ptr<const TemplateInfo>> templates_;
    std::unordered_map<std::uint32_t, std::uint32_t> templateById_;
    LiveBlocks<std::uint32_t, Record> alive_; ///< rows
    ShapeIndexBuilder blockShapes_;
    AddressRanges addresses_; ///< of all device blocks that were reported, in time or not
};

} // namespace vitrine::profiler

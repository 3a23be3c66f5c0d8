// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory history of a run in canonical order (time, then order of recording), with step templates expanded.
//
// Records may come in any order. settle() merges what came: it takes back the events after the earliest new one and
// applies everything again from there, so a live tail costs what is new and a little overlap.
// Not thread-safe; the views are immutable.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/trace.h"
#include "profiler/record/live_blocks.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"
#include "profiler/timeline/address_ranges.h"
#include "profiler/timeline/memory_events.h"
#include "profiler/timeline/pyramid.h"
#include "profiler/timeline/replayed_steps.h"
#include "profiler/timeline/shape_index.h"

namespace vitrine::profiler {

/// More events than this in one run are refused: a damaged file must not ask for all memory.
inline constexpr std::uint64_t kMaxExpandedEvents = std::uint64_t{1} << 28;

using Dims = std::array<std::int64_t, base::kMaxTraceDimensions>;

/// Rows are summed up by this many, so that finding the living ones skips the rest.
inline constexpr std::size_t kLivesRows = 64;

/// Of some rows: how many are alive to the end, the latest death of the others, and between which ids all lie.
struct LivesOfRows {
    base::TimeNs latest = std::numeric_limits<base::TimeNs>::min();
    std::uint64_t lowestId = std::numeric_limits<std::uint64_t>::max(), highestId = 0;
    std::uint32_t open = 0;
};

struct HistoryViews {
    MemoryEvents events;
    PyramidView device, host;
    BlockView<AllocationDef, 512> defs;
    BlockView<Dims, 64> shapes;
    ShapeIndexView blockShapes;
    AddressMap addresses;

    BlockView<LivesOfRows, 256> lives; ///< for each kLivesRows rows
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
    const ReplayInfo& replay(std::uint32_t index) const { return events_.replays()[index]; }
    const TemplateInfo& templateOf(const ReplayInfo& replay) const { return *events_.templates()[replay.step]; }

    /// Applies what was added. With `onlyUnbroken`, records after a gap in the order wait for what fills it.
    void settle(bool onlyUnbroken);

    std::uint64_t events() const { return events_.size(); }
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

    /// The events of a replay that are not in the history yet: from `at` of its template on.
    struct Slice {
        base::TimeNs time = 0; ///< of the next event
        std::uint32_t order = 0;
        std::uint32_t replay = 0;
        std::uint32_t at = 0;
    };
    template <class A, class B> static bool earlier(const A& a, const B& b) {
        return a.time != b.time ? a.time < b.time : a.order < b.order;
    }
    class Merge;

    void readInPlace(TemplateInfo& step) const;
    std::uint32_t addDef(const base::AllocationEvent& event);
    std::uint32_t shapeIndex(const base::AllocationEvent& event);
    void expand(std::uint32_t replay);
    void see(std::uint64_t order);
    /// The rest of a replay from `at` on; none after its last event.
    std::optional<Slice> sliceFrom(std::uint32_t replay, std::size_t at) const;
    void apply(const Record& record);
    void applySlice(const Slice& slice);
    void awaitDeath(std::uint64_t id, std::uint32_t row, base::TimeNs born);
    void born(const MemoryEvent& event, std::uint64_t id);
    void died(const MemoryEvent& event);
    BlockBox boxOf(std::uint32_t row) const;
    void takeBack(std::vector<Record>& records, std::map<std::uint32_t, std::uint32_t>& slices);
    void takeBackFrom(base::TimeNs time, std::uint32_t order, std::vector<Record>& records, std::vector<Slice>& slices);

    base::DeviceRank rank_;

    // Waiting.
    std::vector<Record> births_, deaths_;
    std::vector<Record> expanded_; ///< of replays whose templates cannot be read in place
    std::vector<Slice> slices_;
    struct WaitingReplay {
        Ordered<base::StepReplayedEvent> event;
    };
    std::vector<WaitingReplay> waiting_;
    std::vector<std::uint32_t> newReplays_;
    std::vector<bool> seen_; ///< orders that came
    std::uint64_t unbroken_ = 0;
    std::uint64_t expandedEvents_ = 0;

    // The history.
    MemoryEventsBuilder events_;
    PyramidBuilder device_{MemorySide::Device}, host_{MemorySide::Host};
    SegmentedVector<AllocationDef, 512> defs_;
    SegmentedVector<LivesOfRows, 256> lives_;
    SegmentedVector<Dims, 64> shapes_;
    std::unordered_map<std::uint64_t, std::uint32_t> shapeByHash_;
    std::unordered_map<std::uint32_t, std::uint32_t> templateById_;
    LiveBlocks<std::uint32_t, Record> alive_; ///< rows
    ShapeIndexBuilder blockShapes_;
    AddressRanges addresses_; ///< of all device blocks that were reported, in time or not
};

} // namespace vitrine::profiler

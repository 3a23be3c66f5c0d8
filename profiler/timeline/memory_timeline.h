// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory of a run over time, at any zoom. Built from chunks as they arrive; readers take immutable snapshots, which
// any thread may read. Step templates are already expanded. Bytes are exact; times are nanoseconds since the run's start.
//
// Totals, columns, peaks, aliveAt and shapes are about device memory; host and pinned memory have hostQuery and hostAt.
// An event is a birth or a death of a block in any space, in order of time, then of recording. Event k leaves a state; the
// state before the first event is empty. A window [a, b) of time shows the states that its events leave, and before its
// first event the state that the last event before `a` left (unless an event happens exactly at `a`): transient peaks of
// events at one instant count. A window without events shows that state alone. Until a session's events have been added,
// query, at, peak and peaks answer from its pyramid chunks, exact to the leaves' borders (complete() is false then).
// Where records of memory were lost (gaps()), totals may be wrong from then on: columns and peaks are marked as incomplete.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/column_chunk.h"
#include "base/trace.h"
#include "profiler/timeline/counter_index.h"
#include "profiler/timeline/lazy_rows.h"

namespace vitrine::profiler {

/// What happened between two pixel borders: the split at the instant of the largest total, so that stacks add up.
struct MemoryColumn {
    std::uint64_t minTotal = 0;
    std::uint64_t maxTotal = 0;
    base::TimeNs maxTime = 0; ///< first instant of maxTotal inside the window
    base::CategoryBytes atMax{};
    std::uint64_t events = 0;
    bool incomplete = false; ///< records were lost before its end: totals may be wrong, a peak may be too low
};

/// What happened to device memory in a range of time.
struct RangeTotals {
    std::uint64_t births = 0, deaths = 0;
    double byteNs = 0; ///< integral of the total over time; divided by the length it is the mean
};

/// One allocation with what is known of its life.
struct AllocationRow {
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    base::TimeNs born = 0;
    base::TimeNs freed = -1; ///< -1: alive at the end of what was read
    std::uint64_t scope = 0;
    std::uint32_t name = 0; ///< index for text()
    base::MemoryCategory category = base::MemoryCategory::Other;
    base::MemorySpace space = base::MemorySpace::Device;
    std::uint8_t dtype = 0;
    std::uint8_t rank = 0;
    std::array<std::int64_t, base::kMaxTraceRank> shape{};
};

struct ScopeRow {
    std::uint64_t id = 0, parent = 0;
    base::ScopeKind kind = base::ScopeKind::Op;
    std::uint32_t name = 0;
    std::int32_t index = -1;
    std::int64_t tokens = 0;
    base::TimeNs begin = 0, end = -1; ///< -1: still open
    std::uint64_t bytes = 0, flops = 0;
};

/// An allocation, or what several neighbouring allocations that are too small to draw alone look like together.
/// Addresses are the device's, which spread far: draw them at compactAddress; or those of the Stack layout.
struct AllocationShape {
    std::uint64_t addressBegin = 0, addressEnd = 0;
    base::TimeNs begin = 0, end = 0;
    std::uint32_t count = 1; ///< > 1: a hatch with this count
    std::size_t row = 0;     ///< of the allocation when count is 1, of the largest otherwise
};

enum class GroupBy : std::uint8_t { Category, Layer, Op, Dtype };

class MemoryTimeline {
public:
    virtual ~MemoryTimeline() = default;

    virtual base::TimeNs begin() const = 0; ///< 0, the run's start
    virtual base::TimeNs end() const = 0;   ///< 1 ns behind the last of everything, so that [begin, end) holds it all
    virtual std::uint64_t events() const = 0;
    /// False while query answers from pyramid chunks because the events themselves were not (all) added yet.
    virtual bool complete() const { return true; }
    /// Where records of the run were lost, by begin. Empty for a run that was kept as a whole.
    virtual std::span<const base::GapEvent> gaps() const { return {}; }
    /// The first instant from which totals may be wrong, because records of memory were lost; nothing: all are right.
    virtual std::optional<base::TimeNs> incompleteFrom() const { return std::nullopt; }
    /// Time of event `index` (the last one when beyond), and the number of events before `time`: time and event axis.
    virtual base::TimeNs eventTime(std::uint64_t index) const = 0;
    virtual std::uint64_t eventsBefore(base::TimeNs time) const = 0;

    /// `columns` neighbouring pieces of [begin, end). Answers in well under 5 ms at ten million events.
    virtual std::vector<MemoryColumn> query(base::TimeNs begin, base::TimeNs end, int columns) const = 0;
    /// The same by event number instead of time.
    virtual std::vector<MemoryColumn> queryEvents(std::uint64_t first, std::uint64_t last, int columns) const = 0;
    /// The split at one instant (after all events at that time).
    virtual base::CategoryBytes at(base::TimeNs time) const = 0;
    /// Largest total in [begin, end) and its first instant.
    virtual MemoryColumn peak(base::TimeNs begin, base::TimeNs end) const = 0;
    /// Local maxima for "go to next peak", at most `limit`, largest first.
    virtual std::vector<base::TimeNs> peaks(std::size_t limit) const = 0;

    /// Sums over [begin, end); zeros until complete().
    virtual RangeTotals totals(base::TimeNs begin, base::TimeNs end) const = 0;
    /// query and at for host and pinned host memory together.
    virtual std::vector<MemoryColumn> hostQuery(base::TimeNs begin, base::TimeNs end, int columns) const = 0;
    virtual base::CategoryBytes hostAt(base::TimeNs time) const = 0;

    virtual LazyRows<AllocationRow> allocations() const = 0; ///< by birth, all spaces
    /// Row of the allocation with this id, if there is one.
    virtual std::optional<std::size_t> findAllocation(std::uint64_t id) const = 0;
    /// Rows alive at `time` (device space), largest first.
    virtual std::vector<std::size_t> aliveAt(base::TimeNs time) const = 0;
    /// The same after the first `count` events: several may share an instant, as when a failure frees what it held.
    virtual base::CategoryBytes atEvent(std::uint64_t count) const = 0;
    virtual std::vector<std::size_t> aliveAtEvent(std::uint64_t count) const = 0;
    /// How many events came before outOfMemory()[index].
    virtual std::uint64_t eventsBeforeOutOfMemory(std::size_t index) const = 0;

    /// Shapes to draw for a window of time at a pixel size, at most 20,000. An allocation of at least 2 x 2 pixels stands
    /// alone; smaller neighbours are merged, never dropped: the counts add up to the blocks alive in the window.
    /// `byAddress`: at their addresses, without what the context and libraries hold; else stacked (stackedAddress).
    virtual std::vector<AllocationShape> shapes(base::TimeNs begin, base::TimeNs end, double nsPerPixel,
                                                double bytesPerPixel, bool byAddress) const = 0;
    /// Address of a row in the Stack layout: from 0, in the order of birth, in gaps that fit. The first call on a timeline
    /// places all blocks: about 0.1 us for each event.
    virtual std::uint64_t stackedAddress(std::size_t row) const = 0;
    /// How much of that layout is placed so far, 0 to 1. Never waits: for whoever shows the progress of another thread.
    virtual double stackedPart() const { return 1; }
    /// Where a device address is drawn: from 0 upwards, without the ranges that the run never used. Monotone.
    virtual std::uint64_t compactAddress(std::uint64_t address) const = 0;
    /// Height of a layout in bytes: every compactAddress or stackedAddress of a block's end is at most this.
    virtual std::uint64_t extent(bool byAddress) const = 0;

    virtual LazyRows<ScopeRow> scopes() const = 0; ///< by begin; steps, layers, ops, phases
    virtual LazyRows<ScopeRow> steps() const = 0;  ///< of them the steps alone
    virtual LazyRows<ScopeRow> phases() const = 0; ///< and the phases
    /// Null when there is none. The row lives as long as the timeline.
    virtual const ScopeRow* scope(std::uint64_t id) const = 0;
    /// The same by value, of which the timeline keeps nothing: for whoever asks about many.
    virtual std::optional<ScopeRow> findScope(std::uint64_t id) const = 0;
    /// "step 3 / layer 11 / ExpertMlp"
    virtual std::string scopePath(std::uint64_t id) const = 0;
    virtual std::string_view text(std::uint32_t name) const = 0;

    /// Out-of-memory events in time order.
    virtual std::span<const base::OutOfMemoryEvent> outOfMemory() const = 0;
    /// A counter's samples: "reserved_bytes", "budget_bytes", "largest_free_bytes", "kv_tokens", ...
    virtual std::vector<std::pair<base::TimeNs, double>> counter(std::string_view name) const = 0;
    virtual std::vector<std::string> counters() const = 0;
    /// What a counter did in `columns` neighbouring pieces of [begin, end); not known where it has no samples.
    virtual std::vector<CounterColumn> counterColumns(std::string_view name, base::TimeNs begin, base::TimeNs end,
                                                      int columns) const;
    virtual std::span<const base::SpanEvent> spans() const = 0; ///< names by text(lane.value), text(name.value)
    virtual std::span<const base::TokenEvent> tokens() const = 0;

    /// Of a batch that served requests; empty elsewhere. Steps, requests and pages in time order, slots by their begin.
    virtual std::span<const base::BatchStepEvent> batchSteps() const { return {}; }
    virtual std::span<const base::SlotSpanEvent> slotSpans() const { return {}; }
    /// Reasons by text(reason.value). Times are below 0 where a part of a long run tells what its requests did before it.
    virtual std::span<const base::RequestEvent> requests() const { return {}; }
    virtual std::span<const base::KvPageEvent> kvPages() const { return {}; }
};

/// Builds timelines from chunks, in pieces, as they arrive; snapshot() is cheap enough for 30 Hz.
class MemoryTimelineBuilder {
public:
    MemoryTimelineBuilder();
    ~MemoryTimelineBuilder();
    MemoryTimelineBuilder(const MemoryTimelineBuilder&) = delete; // large
    MemoryTimelineBuilder& operator=(const MemoryTimelineBuilder&) = delete;

    /// Takes a chunk of any stream that the recorder writes; ignores unknown ones. Throws BadInput on damaged chunks.
    void add(const base::ColumnChunk& chunk);
    /// Everything that was added.
    std::shared_ptr<const MemoryTimeline> snapshot();
    /// While a saved run is being read stream by stream: leaves out what waits for streams that have not come, which
    /// snapshot() would have to take back and redo. Ends with one snapshot().
    std::shared_ptr<const MemoryTimeline> preview();

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::profiler

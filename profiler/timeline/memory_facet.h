// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory of a run over time, at any zoom. Bytes are exact; step templates are already expanded.
//
// Totals, columns, peaks, aliveAt and shapes are about device memory; host and pinned memory have hostQuery and hostAt.
// An event is a birth or a death of a block in any space, in order of time, then of recording. Event k leaves a state;
// the state before the first event is empty. A window [a, b) of time shows the states that its events leave, and before
// its first event the state that the last event before `a` left (unless an event happens exactly at `a`): transient
// peaks of events at one instant count. A window without events shows that state alone. Until a session's events have
// been added, query, at, peak and peaks answer from its pyramid chunks, exact to the leaves' borders (complete() is
// false then). Where records of memory were lost, totals may be wrong from then on: columns and peaks are marked as
// incomplete.
//
// Immutable; any thread may ask. What only some readers need (the Stack layout) is made when it is first asked for.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "profiler/record/segmented_vector.h"
#include "profiler/timeline/history.h"
#include "profiler/timeline/lazy_rows.h"
#include "profiler/timeline/stack_layout.h"
#include "profiler/timeline/stored_pyramid.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

/// Between which memory records an allocation failed.
struct FailurePlace {
    base::TimeNs time = 0;
    std::uint64_t order = 0; ///< of the next memory record
};

struct MemoryParts {
    HistoryViews history;
    SharedView<base::OutOfMemoryEvent> outOfMemory;
    SharedView<FailurePlace> failures;           ///< of each of them
    std::shared_ptr<const StoredPyramid> stored; ///< null when the events cover it
    base::TimeNs end = 0;                        ///< after everything that was read
    std::optional<base::TimeNs> incompleteFrom;
};

class MemoryFacet {
public:
    explicit MemoryFacet(MemoryParts parts);
    ~MemoryFacet();
    MemoryFacet(const MemoryFacet&) = delete; // row views hold its address
    MemoryFacet& operator=(const MemoryFacet&) = delete;

    std::uint64_t events() const;
    /// False while query answers from pyramid chunks because the events themselves were not (all) added yet.
    bool complete() const;
    /// The first instant from which totals may be wrong, because records of memory were lost; nothing: all are right.
    std::optional<base::TimeNs> incompleteFrom() const { return parts_.incompleteFrom; }
    /// Time of event `index` (the last one when beyond), and the number of events before `time`: time and event axis.
    base::TimeNs eventTime(std::uint64_t index) const;
    std::uint64_t eventsBefore(base::TimeNs time) const;

    /// `columns` neighbouring pieces of [begin, end). Answers in well under 5 ms at ten million events.
    std::vector<MemoryColumn> query(base::TimeNs begin, base::TimeNs end, int columns) const;
    /// The same by event number instead of time.
    std::vector<MemoryColumn> queryEvents(std::uint64_t first, std::uint64_t last, int columns) const;
    /// The split at one instant (after all events at that time).
    base::CategoryBytes at(base::TimeNs time) const;
    /// Largest total in [begin, end) and its first instant.
    MemoryColumn peak(base::TimeNs begin, base::TimeNs end) const;
    /// Local maxima for "go to next peak", at most `limit`, largest first.
    std::vector<base::TimeNs> peaks(std::size_t limit) const;

    /// Sums over [begin, end); zeros until complete().
    RangeTotals totals(base::TimeNs begin, base::TimeNs end) const;
    /// query and at for host and pinned host memory together.
    std::vector<MemoryColumn> hostQuery(base::TimeNs begin, base::TimeNs end, int columns) const;
    base::CategoryBytes hostAt(base::TimeNs time) const;

    LazyRows<AllocationRow> allocations() const; ///< by birth, all spaces
    /// Row of the allocation with this id, if there is one.
    std::optional<std::size_t> findAllocation(std::uint64_t id) const;
    /// Rows alive at `time` (device space), largest first.
    std::vector<std::size_t> aliveAt(base::TimeNs time) const;
    /// The same after the first `count` events: several may share an instant, as when a failure frees what it held.
    base::CategoryBytes atEvent(std::uint64_t count) const;
    std::vector<std::size_t> aliveAtEvent(std::uint64_t count) const;
    /// How many events came before outOfMemory()[index].
    std::uint64_t eventsBeforeOutOfMemory(std::size_t index) const;

    /// Shapes to draw for a window of time at a pixel size, at most 20,000. An allocation of at least 2 x 2 pixels
    /// stands alone; smaller neighbours are merged, never dropped: the counts add up to the blocks alive in the window.
    /// `byAddress`: at their addresses, without what the context and libraries hold; else stacked (stackedAddress).
    std::vector<AllocationShape> shapes(base::TimeNs begin, base::TimeNs end, double nsPerPixel, double bytesPerPixel,
                                        bool byAddress) const;
    /// Address of a row in the Stack layout: from 0, in the order of birth, in gaps that fit. The first call on a
    /// timeline places all blocks: about 0.1 us for each event.
    std::uint64_t stackedAddress(std::size_t row) const;
    /// How much of that layout is placed so far, 0 to 1. Never waits, so the GUI thread can show the progress of
    /// another thread.
    double stackedPart() const;
    /// Where a device address is drawn: from 0 upwards, without the ranges that the run never used. Monotone.
    std::uint64_t compactAddress(std::uint64_t address) const;
    /// Height of a layout in bytes: every compactAddress or stackedAddress of a block's end is at most this.
    std::uint64_t extent(bool byAddress) const;

    /// Out-of-memory events in time order.
    std::span<const base::OutOfMemoryEvent> outOfMemory() const;

private:
    class AllocationSource;
    struct Lazy;

    MemoryColumn window(const PyramidView& pyramid, base::TimeNs begin, std::uint64_t first, std::uint64_t last) const;
    std::vector<MemoryColumn> windows(const PyramidView& pyramid, base::TimeNs begin, base::TimeNs end,
                                      int columns) const;
    std::vector<MemoryColumn> marked(std::vector<MemoryColumn> columns, base::TimeNs begin, base::TimeNs end) const;
    std::vector<std::size_t> largestFirst(std::vector<std::size_t> rows) const;
    BlockBox box(std::uint32_t row, bool byAddress) const;
    AllocationRow allocation(std::size_t index) const;
    const StackLayout& stack() const;

    MemoryParts parts_;
    std::unique_ptr<Lazy> lazy_;
};

} // namespace vitrine::profiler

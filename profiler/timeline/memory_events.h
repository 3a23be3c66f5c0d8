// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The births and deaths of a run in canonical order, and the rows of its blocks by birth.
//
// Long runs repeat a few steps, so events stand in runs: a run of neighbouring events of one replay costs 24 bytes and
// reads times, sizes and rows from the template; other events are kept one by one ("loose"). A row's life is kept when
// the block was reported by itself or outlives its step; the others follow from the template too. So 56 million events
// of 99,000 equal steps take a few megabytes.
//
// MemoryEvents is immutable and may be read by any thread; MemoryEventsBuilder is not thread-safe.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "profiler/record/segmented_vector.h"
#include "profiler/timeline/replayed_steps.h"
#include "profiler/timeline/run_index.h"

namespace vitrine::profiler {

/// Neighbouring events that are all loose, or all of one replay and in the template's order.
struct EventRun {
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t firstEvent = 0, firstRow = 0;
    std::uint32_t firstKept = 0; ///< rows before it whose lives are kept
    std::uint32_t first = 0;     ///< its first event in the template, or among the loose ones
    std::uint32_t replay = kNoReplay;
    std::uint32_t earlier = kNone; ///< the run before it of the same replay, which another event cut in two
};

/// A loose event without its change, which sums read alone.
struct LooseEvent {
    base::TimeNs time = 0;
    std::uint32_t row = 0;
    std::uint32_t order = 0;
};

struct MemoryEvent {
    base::TimeNs time = 0;
    MemoryChange change;
    std::uint32_t row = 0;
    std::uint32_t order = 0; ///< of the record
};

/// The columns, and how they are read. `Column`: BlockView for readers, SegmentedVector for the builder. `Index`: of
/// the same kind.
template <template <class, std::size_t> class Column, class Index> class MemoryEventColumns {
public:
    std::size_t size() const { return events_.size(); }
    std::size_t rows() const { return rows_.size(); }

    // index < size()
    base::TimeNs time(std::size_t index) const;
    MemoryChange change(std::size_t index) const;
    std::uint32_t row(std::size_t index) const;
    std::uint32_t order(std::size_t index) const;

    // row < rows()
    AllocationLife life(std::uint32_t row) const;
    base::TimeNs freed(std::uint32_t row) const; ///< -1: it lives

    /// Calls take(change) for events [first, last).
    template <class Take> void eachChange(std::size_t first, std::size_t last, Take take) const {
        eachRun(first, last, [&](const EventRun& run, std::size_t at, std::size_t end) {
            if (run.replay == kNoReplay) {
                for (; at < end; ++at) {
                    take(looseChanges_[at]);
                }
            } else {
                const std::vector<TemplateEvent>& events = templateOf(run).events;
                for (; at < end; ++at) {
                    take(events[at].change);
                }
            }
        });
    }
    /// Calls take(event) for events [first, last).
    template <class Take> void each(std::size_t first, std::size_t last, Take take) const {
        eachRun(first, last, [&](const EventRun& run, std::size_t at, std::size_t end) {
            for (; at < end; ++at) {
                take(eventAt(run, at));
            }
        });
    }

    /// Number of events before `time`, and at or before it. The first `atLeast` are known to be before; the search
    /// starts there.
    std::size_t before(base::TimeNs time, std::size_t atLeast = 0) const;
    std::size_t upTo(base::TimeNs time) const;
    /// Number of rows born at or before `time`.
    std::size_t rowsUpTo(base::TimeNs time) const;

    const Column<ReplayInfo, 256>& replays() const { return replays_; }
    const TemplateInfos& templates() const { return templates_; }
    /// What ids and scopes of the block's definition are relative to.
    std::uint64_t firstIdOf(const AllocationLife& life) const {
        return life.replay == kNoReplay ? 0 : replays_[life.replay].firstId;
    }

protected:
    /// Calls take(run, first, last) with the places [first, last) in the template or among the loose events.
    template <class Take> void eachRun(std::size_t first, std::size_t last, Take take) const {
        for (std::size_t index = first < last ? runOfEvent(first) : 0; first < last; ++index) {
            const EventRun& run = runs_[index];
            const std::size_t end = std::min(last, endOf(index));
            take(run, first - run.firstEvent + run.first, end - run.firstEvent + run.first);
            first = end;
        }
    }
    const TemplateInfo& templateOf(const EventRun& run) const { return *templates_[replays_[run.replay].step]; }
    std::size_t endOf(std::size_t run) const { return run + 1 < runs_.size() ? runs_[run + 1].firstEvent : size(); }
    std::size_t runOfEvent(std::size_t event) const {
        return events_.runOf(event, runs_.size(), [this](std::size_t run) { return runs_[run].firstEvent; });
    }
    std::size_t runOfRow(std::size_t row) const {
        return rows_.runOf(row, runs_.size(), [this](std::size_t run) { return runs_[run].firstRow; });
    }
    /// Events from the start on that `isBefore(time)` is true of; of the first `atLeast` it is.
    template <class Before> std::size_t countWhile(std::size_t atLeast, Before isBefore) const;
    MemoryEvent eventAt(const EventRun& run, std::size_t at) const;
    base::TimeNs timeAt(const EventRun& run, std::size_t at) const;
    std::uint32_t rowAt(const EventRun& run, std::size_t at) const;
    /// Which of the template's events is the birth of the row.
    std::uint32_t birthOf(const EventRun& run, std::uint32_t row) const;
    /// Where the life of a row is kept; kNone: it follows from the template.
    std::uint32_t keptAt(const EventRun& run, std::uint32_t row) const;

    Index events_, rows_;
    Column<EventRun, 256> runs_;
    Column<LooseEvent, 256> loose_;
    Column<MemoryChange, 512> looseChanges_;
    Column<AllocationLife, 256> keptLives_;
    Column<base::TimeNs, 256> keptFreed_;
    Column<ReplayInfo, 256> replays_;
    TemplateInfos templates_;
};

class MemoryEvents : public MemoryEventColumns<BlockView, RunIndex> {
    friend class MemoryEventsBuilder;
};

class MemoryEventsBuilder : public MemoryEventColumns<SegmentedVector, RunIndexBuilder> {
public:
    std::uint32_t addTemplate(std::shared_ptr<const TemplateInfo> step);
    std::uint32_t addReplay(const ReplayInfo& replay);

    /// Each appends one event. A birth returns the row of the block.
    std::uint32_t addBirth(std::uint32_t order, const AllocationLife& life, MemoryChange change);
    void addDeath(std::uint32_t order, base::TimeNs time, std::uint32_t row, MemoryChange change);
    /// Event `at` of the template; those before it were added. Returns the event as it stands.
    MemoryEvent addTemplateEvent(std::uint32_t replay, std::uint32_t at);

    /// The last event and what it belongs to, before it is taken back.
    struct Last {
        MemoryEvent event;
        std::uint32_t replay = kNoReplay; ///< of an event of a template
        std::uint32_t at = 0;             ///< its place there
    };
    Last last() const;
    void takeBack();

    MemoryEvents view();

private:
    const EventRun& openRun(std::uint32_t replay, std::uint32_t first);
    void countRow() { rows_.push(runs_.size() - 1); }
    void countEvent() { events_.push(runs_.size() - 1); }
    void pushLoose(const MemoryEvent& event);

    std::vector<std::uint32_t> lastRun_; ///< of each replay
};

extern template class MemoryEventColumns<BlockView, RunIndex>;
extern template class MemoryEventColumns<SegmentedVector, RunIndexBuilder>;

} // namespace vitrine::profiler

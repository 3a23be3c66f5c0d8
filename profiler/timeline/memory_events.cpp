// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/memory_events.h"

#include <ranges>
#include <utility>

#include "profiler/timeline/ordered_search.h"

namespace vitrine::profiler {

namespace {

/// The first index from `low` on that `isBefore` is false of; `high` when there is none. Doubling steps first: the next
/// pixel's border is near.
template <class Before> std::size_t gallop(std::size_t low, std::size_t high, Before isBefore) {
    std::size_t step = 1;
    while (low + step <= high && isBefore(low + step - 1)) {
        low += step;
        step *= 2;
    }
    return *std::ranges::partition_point(std::views::iota(low, std::min(low + step - 1, high)), isBefore);
}

} // namespace

template <template <class, std::size_t> class Column, class Index>
base::TimeNs MemoryEventColumns<Column, Index>::timeAt(const EventRun& run, std::size_t at) const {
    if (run.replay == kNoReplay) {
        return loose_[at].time;
    }
    const ReplayInfo& replay = replays_[run.replay];
    const TemplateInfo& step = *templates_[replay.step];
    return expandTime(replay, step.duration, step.events[at].time);
}

template <template <class, std::size_t> class Column, class Index>
std::uint32_t MemoryEventColumns<Column, Index>::rowAt(const EventRun& run, std::size_t at) const {
    if (run.replay == kNoReplay) {
        return loose_[at].row;
    }
    const std::vector<TemplateEvent>& events = templateOf(run).events;
    const std::size_t birth = events[at].change.death() ? events[at].partner : at;
    const EventRun* bearing = &run;
    while (birth < bearing->first) {
        bearing = &runs_[bearing->earlier];
    }
    return bearing->firstRow + events[birth].births - events[bearing->first].births;
}

template <template <class, std::size_t> class Column, class Index>
MemoryEvent MemoryEventColumns<Column, Index>::eventAt(const EventRun& run, std::size_t at) const {
    if (run.replay == kNoReplay) {
        const LooseEvent& event = loose_[at];
        return {event.time, looseChanges_[at], event.row, event.order};
    }
    return {timeAt(run, at), templateOf(run).events[at].change, rowAt(run, at), replays_[run.replay].order};
}

template <template <class, std::size_t> class Column, class Index>
base::TimeNs MemoryEventColumns<Column, Index>::time(std::size_t index) const {
    const EventRun& run = runs_[runOfEvent(index)];
    return timeAt(run, index - run.firstEvent + run.first);
}

template <template <class, std::size_t> class Column, class Index>
MemoryChange MemoryEventColumns<Column, Index>::change(std::size_t index) const {
    const EventRun& run = runs_[runOfEvent(index)];
    const std::size_t at = index - run.firstEvent + run.first;
    return run.replay == kNoReplay ? looseChanges_[at] : templateOf(run).events[at].change;
}

template <template <class, std::size_t> class Column, class Index>
std::uint32_t MemoryEventColumns<Column, Index>::row(std::size_t index) const {
    const EventRun& run = runs_[runOfEvent(index)];
    return rowAt(run, index - run.firstEvent + run.first);
}

template <template <class, std::size_t> class Column, class Index>
std::uint32_t MemoryEventColumns<Column, Index>::order(std::size_t index) const {
    const EventRun& run = runs_[runOfEvent(index)];
    return run.replay == kNoReplay ? loose_[index - run.firstEvent + run.first].order : replays_[run.replay].order;
}

template <template <class, std::size_t> class Column, class Index>
std::uint32_t MemoryEventColumns<Column, Index>::birthOf(const EventRun& run, std::uint32_t row) const {
    const TemplateInfo& step = templateOf(run);
    return step.births[step.events[run.first].births + (row - run.firstRow)];
}

template <template <class, std::size_t> class Column, class Index>
std::uint32_t MemoryEventColumns<Column, Index>::keptAt(const EventRun& run, std::uint32_t row) const {
    if (run.replay == kNoReplay) {
        return run.firstKept + (row - run.firstRow);
    }
    const std::vector<TemplateEvent>& events = templateOf(run).events;
    const TemplateEvent& birth = events[birthOf(run, row)];
    return birth.outlives() ? run.firstKept + birth.outliving - events[run.first].outliving : EventRun::kNone;
}

template <template <class, std::size_t> class Column, class Index>
AllocationLife MemoryEventColumns<Column, Index>::life(std::uint32_t row) const {
    const EventRun& run = runs_[runOfRow(row)];
    if (run.replay == kNoReplay) {
        return keptLives_[keptAt(run, row)];
    }
    const std::uint32_t birth = birthOf(run, row);
    return {timeAt(run, birth), templateOf(run).events[birth].def, run.replay};
}

template <template <class, std::size_t> class Column, class Index>
base::TimeNs MemoryEventColumns<Column, Index>::freed(std::uint32_t row) const {
    const EventRun& run = runs_[runOfRow(row)];
    const std::uint32_t kept = keptAt(run, row);
    return kept == EventRun::kNone ? timeAt(run, templateOf(run).events[birthOf(run, row)].partner) : keptFreed_[kept];
}

template <template <class, std::size_t> class Column, class Index>
template <class Before>
std::size_t MemoryEventColumns<Column, Index>::countWhile(std::size_t atLeast, Before isBefore) const {
    if (atLeast >= size()) {
        return size();
    }
    // Runs first, then events of one run: few events are looked up by their number.
    const std::size_t first = runOfEvent(atLeast);
    const std::size_t run =
        gallop(first + 1, runs_.size(),
               [&](std::size_t index) { return isBefore(timeAt(runs_[index], runs_[index].first)); }) -
        1;
    const EventRun& around = runs_[run];
    const std::size_t begin = run == first ? atLeast : around.firstEvent;
    return gallop(begin, endOf(run), [&](std::size_t event) {
        return isBefore(timeAt(around, event - around.firstEvent + around.first));
    });
}

template <template <class, std::size_t> class Column, class Index>
std::size_t MemoryEventColumns<Column, Index>::before(base::TimeNs time, std::size_t atLeast) const {
    return countWhile(atLeast, [time](base::TimeNs event) { return event < time; });
}

template <template <class, std::size_t> class Column, class Index>
std::size_t MemoryEventColumns<Column, Index>::upTo(base::TimeNs time) const {
    return countWhile(0, [time](base::TimeNs event) { return event <= time; });
}

template <template <class, std::size_t> class Column, class Index>
std::size_t MemoryEventColumns<Column, Index>::rowsUpTo(base::TimeNs time) const {
    return static_cast<std::size_t>(
        1 + lastNotAbove(rows(), time, [this](std::size_t row) { return life(static_cast<std::uint32_t>(row)).born; }));
}

template class MemoryEventColumns<BlockView, RunIndex>;
template class MemoryEventColumns<SegmentedVector, RunIndexBuilder>;

std::uint32_t MemoryEventsBuilder::addTemplate(std::shared_ptr<const TemplateInfo> step) {
    templates_.push_back(std::move(step));
    return static_cast<std::uint32_t>(templates_.size() - 1);
}

std::uint32_t MemoryEventsBuilder::addReplay(const ReplayInfo& replay) {
    replays_.push(replay);
    lastRun_.push_back(EventRun::kNone);
    return static_cast<std::uint32_t>(replays_.size() - 1);
}

/// The run that the next event belongs to: the last one if it continues it, else a new one.
const EventRun& MemoryEventsBuilder::openRun(std::uint32_t replay, std::uint32_t first) {
    if (runs_.empty() || runs_.back().replay != replay) {
        const bool loose = replay == kNoReplay;
        runs_.push({static_cast<std::uint32_t>(size()), static_cast<std::uint32_t>(rows()),
                    static_cast<std::uint32_t>(keptLives_.size()), first, replay,
                    loose ? EventRun::kNone : lastRun_[replay]});
        if (!loose) {
            lastRun_[replay] = static_cast<std::uint32_t>(runs_.size() - 1);
        }
    }
    return runs_.back();
}

void MemoryEventsBuilder::pushLoose(const MemoryEvent& event) {
    openRun(kNoReplay, static_cast<std::uint32_t>(loose_.size()));
    loose_.push({event.time, event.row, event.order});
    looseChanges_.push(event.change);
    countEvent();
}

std::uint32_t MemoryEventsBuilder::addBirth(std::uint32_t order, const AllocationLife& life, MemoryChange change) {
    const auto row = static_cast<std::uint32_t>(rows());
    pushLoose({life.born, change, row, order});
    countRow();
    keptLives_.push(life);
    keptFreed_.push(-1);
    return row;
}

void MemoryEventsBuilder::addDeath(std::uint32_t order, base::TimeNs time, std::uint32_t row, MemoryChange change) {
    pushLoose({time, change, row, order});
    keptFreed_.writable(keptAt(runs_[runOfRow(row)], row)) = time;
}

MemoryEvent MemoryEventsBuilder::addTemplateEvent(std::uint32_t replay, std::uint32_t at) {
    const EventRun& run = openRun(replay, at);
    const TemplateEvent& event = templateOf(run).events[at];
    countEvent();
    if (!event.change.death()) {
        countRow();
        if (event.outlives()) {
            keptLives_.push({timeAt(run, at), event.def, replay});
            keptFreed_.push(-1);
        }
    }
    return eventAt(run, at);
}

MemoryEventsBuilder::Last MemoryEventsBuilder::last() const {
    const EventRun& run = runs_.back();
    const std::size_t at = size() - 1 - run.firstEvent + run.first;
    return {eventAt(run, at), run.replay, static_cast<std::uint32_t>(at)};
}

void MemoryEventsBuilder::takeBack() {
    const Last last = this->last();
    const bool loose = last.replay == kNoReplay;
    if (last.event.change.death()) {
        if (loose) {
            keptFreed_.writable(keptAt(runs_[runOfRow(last.event.row)], last.event.row)) = -1;
        }
    } else {
        if (loose || templateOf(runs_.back()).events[last.at].outlives()) {
            keptLives_.truncate(keptLives_.size() - 1);
            keptFreed_.truncate(keptFreed_.size() - 1);
        }
        rows_.popBack();
    }
    if (loose) {
        loose_.truncate(loose_.size() - 1);
        looseChanges_.truncate(looseChanges_.size() - 1);
    }
    events_.popBack();
    if (runs_.back().firstEvent == size()) {
        if (!loose) {
            lastRun_[last.replay] = runs_.back().earlier;
        }
        runs_.truncate(runs_.size() - 1);
    }
}

MemoryEvents MemoryEventsBuilder::view() {
    MemoryEvents view;
    view.events_ = events_.view();
    view.rows_ = rows_.view();
    view.runs_ = runs_.view();
    view.loose_ = loose_.view();
    view.looseChanges_ = looseChanges_.view();
    view.keptLives_ = keptLives_.view();
    view.keptFreed_ = keptFreed_.view();
    view.replays_ = replays_.view();
    view.templates_ = templates_;
    return view;
}

} // namespace vitrine::profiler

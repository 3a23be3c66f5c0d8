// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <utility>

#include "base/error.h"

namespace vitrine::profiler {

namespace {

template <class Records, class Earlier> void sortIfNeeded(Records& records, Earlier earlier) {
    if (!std::is_sorted(records.begin(), records.end(), earlier)) {
        std::stable_sort(records.begin(), records.end(), earlier);
    }
}

} // namespace

std::uint32_t MemoryHistory::shapeIndex(const base::AllocationEvent& event) {
    Dims dims{};
    std::copy_n(event.shape.begin(), event.dimensions, dims.begin());
    if (!shapes_.empty() && shapes_.back() == dims) {
        return static_cast<std::uint32_t>(shapes_.size() - 1);
    }
    std::uint64_t hash = 0;
    for (const std::int64_t dim : dims) {
        hash = (hash ^ static_cast<std::uint64_t>(dim)) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    const auto known = shapeByHash_.find(hash);
    if (known != shapeByHash_.end() && shapes_[known->second] == dims) {
        return known->second;
    }
    shapes_.push(dims);
    const auto index = static_cast<std::uint32_t>(shapes_.size() - 1);
    shapeByHash_[hash] = index;
    return index;
}

std::uint32_t MemoryHistory::addDef(const base::AllocationEvent& event) {
    if (defs_.size() >= kMaxExpandedEvents) {
        throw base::BadInput("stream allocations: more blocks than this program takes; the session is damaged");
    }
    defs_.push({event.id, event.address, event.bytes, event.scope.value, event.name.value, event.category, event.space,
                event.dtype, event.dimensions, shapeIndex(event), event.format.value});
    if (hasAddress(defs_.back())) {
        addresses_.add(event.address, event.address + event.bytes);
    }
    return static_cast<std::uint32_t>(defs_.size() - 1);
}

void MemoryHistory::see(std::uint64_t order) {
    if (order > seen_.size() + 2 * kMaxExpandedEvents) {
        throw base::BadInput("stream allocations: order: a value is out of range; the session is damaged");
    }
    if (order >= seen_.size()) {
        seen_.resize(order + 1);
    }
    seen_[order] = true;
    while (unbroken_ < seen_.size() && seen_[unbroken_]) {
        ++unbroken_;
    }
}

void MemoryHistory::addAllocations(const std::vector<Ordered<base::AllocationEvent>>& events) {
    for (const auto& [order, event] : events) {
        see(order);
        if (event.device != rank_) {
            continue;
        }
        births_.push_back({event.time, static_cast<std::uint32_t>(order), kNoReplay, addDef(event)});
        if (const auto death = alive_.takeEarlyDeath(event.id)) {
            deaths_.push_back(*death);
        }
    }
}

void MemoryHistory::addFrees(const std::vector<Ordered<base::FreeEvent>>& events) {
    for (const auto& [order, event] : events) {
        see(order);
        if (event.device != rank_) {
            continue;
        }
        deaths_.push_back({event.time, static_cast<std::uint32_t>(order), kDeath, event.id});
    }
}

void MemoryHistory::addTemplates(const std::vector<std::shared_ptr<const base::StepTemplate>>& steps) {
    for (const auto& step : steps) {
        auto info = std::make_shared<TemplateInfo>();
        info->id = step->id;
        info->duration = step->duration;
        info->idCount = step->idCount;
        info->memory = memoryOf(*step, [this](const base::AllocationEvent& event) { return addDef(event); });
        std::unordered_map<std::uint64_t, std::size_t> open; // scope id to index
        for (const base::TraceEvent& event : step->events) {
            if (const auto* begin = std::get_if<base::ScopeBeginEvent>(&event)) {
                open[begin->id.value] = info->scopes.size();
                info->scopes.push_back({*begin});
            } else if (const auto* end = std::get_if<base::ScopeEndEvent>(&event)) {
                if (const auto it = open.find(end->id.value); it != open.end()) {
                    TemplateInfo::Scope& scope = info->scopes[it->second];
                    scope.end = end->time;
                    scope.bytes = end->bytes;
                    scope.flops = end->flops;
                }
            } else if (const auto* span = std::get_if<base::SpanEvent>(&event)) {
                info->spans.push_back(*span);
            }
        }
        readInPlace(*info);
        templateById_.insert_or_assign(step->id, events_.addTemplate(std::move(info)));
    }
}

/// Keeps the births and deaths of the template so that replays need not be expanded, where that is possible.
void MemoryHistory::readInPlace(TemplateInfo& step) const {
    step.scopesRise =
        std::ranges::is_sorted(step.scopes, {}, [](const TemplateInfo::Scope& scope) { return scope.begin.time; });
    step.events = templateEvents(step.memory, [this](std::uint32_t def) { return defs_[def].change(false); });
    if (step.events.empty()) {
        return;
    }
    step.memory = {};
    for (std::size_t at = 0; at < step.events.size(); ++at) {
        if (!step.events[at].change.death()) {
            step.births.push_back(static_cast<std::uint32_t>(at));
        }
    }
}

void MemoryHistory::addReplays(const std::vector<Ordered<base::StepReplayedEvent>>& events) {
    for (const auto& event : events) {
        see(event.order);
        if (event.event.device == rank_) {
            waiting_.push_back({event});
        }
    }
}

void MemoryHistory::expand(std::uint32_t index) {
    const ReplayInfo& replay = this->replay(index);
    const TemplateInfo& step = templateOf(replay);
    if (!step.events.empty() && replay.begin <= replay.end) {
        slices_.push_back(*sliceFrom(index, 0));
        return;
    }
    const auto push = [&](base::TimeNs time, std::uint64_t id, bool death, std::uint32_t def) {
        expanded_.push_back({time, replay.order, death ? kDeath : index, death ? id : def});
    };
    for (const TemplateEvent& event : step.events) {
        push(expandTime(replay, step.duration, event.time), replay.firstId + event.id, event.change.death(), event.def);
    }
    expandMemory(step.memory, step.duration, replay.begin, replay.end, replay.firstId,
                 [&](base::TimeNs time, std::uint64_t id, const TemplateMemory& item) {
                     push(time, id, item.death, item.block);
                 });
}

std::vector<std::uint32_t> MemoryHistory::takeNewReplays() {
    std::vector<WaitingReplay> still;
    for (const WaitingReplay& waiting : waiting_) {
        const base::StepReplayedEvent& event = waiting.event.event;
        const auto step = templateById_.find(event.stepTemplate);
        if (step == templateById_.end()) {
            still.push_back(waiting);
            continue;
        }
        const TemplateInfo& info = *events_.templates()[step->second];
        expandedEvents_ += info.memoryEvents() + info.scopes.size() + info.spans.size();
        if (expandedEvents_ > kMaxExpandedEvents) {
            throw base::BadInput("stream replays: template: the steps hold more events than this program takes; the "
                                 "session is damaged");
        }
        const std::uint32_t index =
            events_.addReplay({event.begin, event.end, event.firstId, event.parent.value, step->second,
                               static_cast<std::uint32_t>(waiting.event.order), event.index});
        expand(index);
        newReplays_.push_back(index);
    }
    waiting_ = std::move(still);
    return std::exchange(newReplays_, {});
}

std::optional<MemoryHistory::Slice> MemoryHistory::sliceFrom(std::uint32_t index, std::size_t at) const {
    const ReplayInfo& replay = this->replay(index);
    const TemplateInfo& step = templateOf(replay);
    if (at >= step.events.size()) {
        return std::nullopt;
    }
    return Slice{expandTime(replay, step.duration, step.events[at].time), replay.order, index,
                 static_cast<std::uint32_t>(at)};
}

/// What settle() applies, in order: sorted runs of records, and slices of replays.
class MemoryHistory::Merge {
public:
    explicit Merge(MemoryHistory& history) : history_(history) {}

    void add(std::vector<Record> records) {
        if (!records.empty()) {
            note(records.front());
            runs_.push_back({std::move(records)});
        }
    }
    void add(const std::vector<Slice>& slices) {
        for (const Slice& slice : slices) {
            note(slice);
            slices_.push(slice);
        }
    }
    bool empty() const { return runs_.empty() && slices_.empty(); }
    base::TimeNs firstTime() const { return firstTime_; }
    std::uint32_t firstOrder() const { return firstOrder_; }

    void apply() {
        while (true) {
            Run* run = nullptr;
            for (Run& other : runs_) {
                const bool better = !other.done() && (run == nullptr || earlier(other.front(), run->front()));
                run = better ? &other : run;
            }
            if (!slices_.empty() && (run == nullptr || earlier(slices_.top(), run->front()))) {
                applySlice(run);
            } else if (run != nullptr) {
                history_.apply(run->records[run->next++]);
            } else {
                return;
            }
        }
    }

private:
    struct Run {
        std::vector<Record> records;
        std::size_t next = 0;
        bool done() const { return next == records.size(); }
        const Record& front() const { return records[next]; }
    };
    struct Later {
        bool operator()(const Slice& a, const Slice& b) const { return earlier(b, a); }
    };

    template <class Item> void note(const Item& item) {
        if (empty() || earlier(item, Slice{firstTime_, firstOrder_})) {
            firstTime_ = item.time;
            firstOrder_ = item.order;
        }
    }

    /// Applies the first slice up to what comes before its next event.
    void applySlice(const Run* run) {
        std::optional<Slice> slice = slices_.top();
        slices_.pop();
        do {
            history_.applySlice(*slice);
            slice = history_.sliceFrom(slice->replay, slice->at + 1);
        } while (slice && (run == nullptr || earlier(*slice, run->front())) &&
                 (slices_.empty() || earlier(*slice, slices_.top())));
        if (slice) {
            slices_.push(*slice);
        }
    }

    MemoryHistory& history_;
    std::vector<Run> runs_;
    std::priority_queue<Slice, std::vector<Slice>, Later> slices_;
    base::TimeNs firstTime_ = 0;
    std::uint32_t firstOrder_ = 0;
};

void MemoryHistory::settle(bool onlyUnbroken) {
    Merge merge(*this);
    const auto take = [&]<class Item>(std::vector<Item>& waiting, auto sort) {
        std::vector<Item> ready = std::exchange(waiting, {});
        sort(ready);
        if (onlyUnbroken) {
            const auto late = std::stable_partition(ready.begin(), ready.end(),
                                                    [this](const Item& item) { return item.order < unbroken_; });
            waiting.assign(late, ready.end());
            ready.erase(late, ready.end());
        }
        merge.add(std::move(ready));
    };
    // Records of one replay share an order and stay in one run, so their own order holds.
    const auto byTime = [](std::vector<Record>& records) { sortIfNeeded(records, earlier<Record, Record>); };
    take(births_, byTime);
    take(deaths_, byTime);
    take(expanded_, byTime);
    take(slices_, [](std::vector<Slice>&) {});
    if (merge.empty()) {
        return;
    }
    std::vector<Record> records;
    std::vector<Slice> slices;
    takeBackFrom(merge.firstTime(), merge.firstOrder(), records, slices);
    merge.add(std::move(records));
    merge.add(slices);
    merge.apply();
}

void MemoryHistory::apply(const Record& record) {
    if (record.death()) {
        const auto row = alive_.death(record.payload, record);
        if (!row) {
            return; // it waits for its birth
        }
        const MemoryChange change = defs_[events_.life(*row).def].change(true);
        events_.addDeath(record.order, record.time, *row, change);
        died({record.time, change, *row, record.order});
        return;
    }
    const AllocationLife life{record.time, static_cast<std::uint32_t>(record.payload), record.replay};
    const MemoryChange change = defs_[life.def].change(false);
    const std::uint32_t row = events_.addBirth(record.order, life, change);
    const std::uint64_t id = events_.firstIdOf(life) + defs_[life.def].id;
    born({record.time, change, row, record.order}, id);
    awaitDeath(id, row, record.time);
}

void MemoryHistory::applySlice(const Slice& slice) {
    const MemoryEvent event = events_.addTemplateEvent(slice.replay, slice.at);
    if (event.change.death()) {
        died(event);
        return;
    }
    const ReplayInfo& replay = this->replay(slice.replay);
    const TemplateEvent& birth = templateOf(replay).events[slice.at];
    const std::uint64_t id = replay.firstId + birth.id;
    born(event, id);
    if (birth.outlives()) {
        awaitDeath(id, event.row, event.time);
    }
}

/// Notes a block whose death is a record of its own.
void MemoryHistory::awaitDeath(std::uint64_t id, std::uint32_t row, base::TimeNs born) {
    if (std::optional<Record> early = alive_.birth(id, row)) {
        // Clocks of two threads may disagree: a death reported for an earlier time happens at the birth.
        early->time = born;
        apply(*early);
    }
}

void MemoryHistory::born(const MemoryEvent& event, std::uint64_t id) {
    if (event.row % kLivesRows == 0) {
        lives_.push({});
    }
    LivesOfRows& lives = lives_.writable(lives_.size() - 1);
    ++lives.open;
    lives.lowestId = std::min(lives.lowestId, id);
    lives.highestId = std::max(lives.highestId, id);
    device_.add(event.time, event.change);
    host_.add(event.time, event.change);
}

void MemoryHistory::died(const MemoryEvent& event) {
    LivesOfRows& lives = lives_.writable(event.row / kLivesRows);
    --lives.open;
    lives.latest = std::max(lives.latest, event.time);
    if (hasAddress(defs_[events_.life(event.row).def])) {
        blockShapes_.add(event.row, boxOf(event.row), [this](std::uint32_t row) { return boxOf(row); });
    }
    device_.add(event.time, event.change);
    host_.add(event.time, event.change);
}

/// Of a block that died.
BlockBox MemoryHistory::boxOf(std::uint32_t row) const {
    const AllocationLife life = events_.life(row);
    const AllocationDef& def = defs_[life.def];
    return {def.address, def.bytes, life.born, events_.freed(row)};
}

/// Takes back the last event, to be applied again: a record, or the place from which on a replay is gone.
void MemoryHistory::takeBack(std::vector<Record>& records, std::map<std::uint32_t, std::uint32_t>& slices) {
    const auto [event, replay, at] = events_.last();
    const AllocationLife life = events_.life(event.row);
    const AllocationDef& def = defs_[life.def];
    const std::uint64_t id = events_.firstIdOf(life) + def.id;
    const bool death = event.change.death();
    if (replay != kNoReplay) {
        slices[replay] = at;
    } else {
        records.push_back({event.time, event.order, death ? kDeath : life.replay, death ? id : life.def});
    }
    if (death) {
        if (hasAddress(def)) {
            blockShapes_.removeLast(boxOf(event.row));
        }
        ++lives_.writable(event.row / kLivesRows).open;
        if (replay == kNoReplay) {
            alive_.undeath(id, event.row);
        }
    } else {
        alive_.unbirth(id);
        --lives_.writable(lives_.size() - 1).open;
        if (event.row % kLivesRows == 0) {
            lives_.truncate(lives_.size() - 1);
        }
    }
    events_.takeBack();
}

/// Takes back the events after a record of this time and order.
void MemoryHistory::takeBackFrom(base::TimeNs time, std::uint32_t order, std::vector<Record>& records,
                                 std::vector<Slice>& slices) {
    std::map<std::uint32_t, std::uint32_t> gone; // replay to place in its template
    while (events_.size() > 0 && earlier(Slice{time, order}, events_.last().event)) {
        takeBack(records, gone);
    }
    std::ranges::reverse(records);
    for (const auto& [replay, at] : gone) {
        slices.push_back(*sliceFrom(replay, at));
    }
    const auto timeAt = [this](std::uint64_t i) { return events_.time(i); };
    const auto changeAt = [this](std::uint64_t i) { return events_.change(i); };
    device_.truncate(events_.size(), timeAt, changeAt);
    host_.truncate(events_.size(), timeAt, changeAt);
}

HistoryViews MemoryHistory::views() {
    HistoryViews views;
    views.events = events_.view();
    views.device = device_.view();
    views.host = host_.view();
    views.defs = defs_.view();
    views.shapes = shapes_.view();
    views.blockShapes = blockShapes_.view();
    views.addresses = addresses_.view();
    views.lives = lives_.view();
    return views;
}

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/history.h"

#include <algorithm>
#include <cmath>

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
                event.dtype, event.dimensions, shapeIndex(event)});
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
        templateById_.insert_or_assign(step->id, static_cast<std::uint32_t>(templates_.size()));
        templates_.push_back(std::move(info));
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
    const ReplayInfo& replay = replays_[index];
    const TemplateInfo& step = *templates_[replay.step];
    expandMemory(step.memory, step.duration, replay.begin, replay.end, replay.firstId,
                 [&](base::TimeNs time, std::uint64_t id, const TemplateMemory& item) {
                     expanded_.push_back({time, 0, item.death ? kDeath : index, item.death ? id : item.block});
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
        const TemplateInfo& info = *templates_[step->second];
        expandedEvents_ += info.memory.size() + info.scopes.size() + info.spans.size();
        if (expandedEvents_ > kMaxExpandedEvents) {
            throw base::BadInput("stream replays: template: the steps hold more events than this program takes; the "
                                 "session is damaged");
        }
        const auto index = static_cast<std::uint32_t>(replays_.size());
        replays_.push({event.begin, event.end, event.firstId, event.parent.value, step->second, event.index});
        const std::size_t first = expanded_.size();
        expand(index);
        for (std::size_t i = first; i < expanded_.size(); ++i) {
            expanded_[i].order = static_cast<std::uint32_t>(waiting.event.order);
        }
        newReplays_.push_back(index);
    }
    waiting_ = std::move(still);
    return std::exchange(newReplays_, {});
}

void MemoryHistory::takeBackTo(const Record& first, std::vector<Record>& again) {
    while (!times_.empty() && earlier(first, Record{times_.back(), orders_.back(), kNoReplay, 0})) {
        again.push_back(takeBack());
    }
    std::ranges::reverse(again);
    const auto timeAt = [this](std::uint64_t i) { return times_[i]; };
    const auto stepAt = [this](std::uint64_t i) { return steps_[i]; };
    device_.truncate(times_.size(), timeAt, stepAt);
    host_.truncate(times_.size(), timeAt, stepAt);
}

void MemoryHistory::settle(bool onlyUnbroken) {
    // Sorted runs; records of one replay share an order and stay in one run, so their own order holds.
    std::array<std::vector<Record>, 4> runs;
    std::array<std::vector<Record>*, 3> waiting{&births_, &deaths_, &expanded_};
    const Record* first = nullptr;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        std::vector<Record>& run = runs[i];
        run.swap(*waiting[i]);
        sortIfNeeded(run, earlier);
        if (onlyUnbroken) {
            const auto late = std::stable_partition(run.begin(), run.end(),
                                                    [this](const Record& record) { return record.order < unbroken_; });
            waiting[i]->assign(late, run.end());
            run.erase(late, run.end());
        }
        if (!run.empty() && (first == nullptr || earlier(run.front(), *first))) {
            first = &run.front();
        }
    }
    if (first == nullptr) {
        return;
    }
    takeBackTo(*first, runs.back());
    std::array<std::size_t, 4> next{};
    while (true) {
        std::size_t best = runs.size();
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const bool better =
                next[i] < runs[i].size() && (best == runs.size() || earlier(runs[i][next[i]], runs[best][next[best]]));
            best = better ? i : best;
        }
        if (best == runs.size()) {
            return;
        }
        apply(runs[best][next[best]++]);
    }
}

std::uint64_t MemoryHistory::idOf(const AllocationLife& row) const {
    const std::uint64_t id = defs_[row.def].id;
    return row.replay == kNoReplay ? id : replays_[row.replay].firstId + id;
}

void MemoryHistory::putEvent(base::TimeNs time, MemoryChange step, std::uint32_t row, std::uint32_t order) {
    times_.push(time);
    steps_.push(step);
    eventRows_.push(row);
    orders_.push(order);
    device_.add(time, step);
    host_.add(time, step);
}

void MemoryHistory::apply(const Record& record) {
    if (record.death()) {
        const auto row = alive_.death(record.payload, record);
        if (!row) {
            return; // it waits for its birth
        }
        const AllocationLife& block = rows_[*row];
        const AllocationDef& def = defs_[block.def];
        freed_.writable(*row) = record.time;
        HistoryViews::Lives& lives = lives_[*row / kLivesRows];
        --lives.open;
        lives.latest = std::max(lives.latest, record.time);
        if (hasAddress(def)) {
            blockShapes_.add(*row, {def.address, def.bytes, block.born, record.time}, [this](std::uint32_t r) {
                const AllocationLife& other = rows_[r];
                const AllocationDef& what = defs_[other.def];
                return BlockBox{what.address, what.bytes, other.born, freed_[r]};
            });
        }
        putEvent(record.time, MemoryChange(def.bytes, def.space, def.category, true), *row, record.order);
        return;
    }
    const auto row = static_cast<std::uint32_t>(rows_.size());
    const auto def = static_cast<std::uint32_t>(record.payload);
    rows_.push({record.time, def, record.replay});
    freed_.push(-1);
    if (row % kLivesRows == 0) {
        lives_.emplace_back();
    }
    const std::uint64_t id = idOf(rows_[row]);
    HistoryViews::Lives& lives = lives_.back();
    ++lives.open;
    lives.lowestId = std::min(lives.lowestId, id);
    lives.highestId = std::max(lives.highestId, id);
    const std::optional<Record> early = alive_.birth(id, row);
    const AllocationDef& what = defs_[def];
    putEvent(record.time, MemoryChange(what.bytes, what.space, what.category, false), row, record.order);
    if (early) {
        // Clocks of two threads may disagree: a death reported for an earlier time happens at the birth.
        Record death = *early;
        death.time = record.time;
        apply(death);
    }
}

MemoryHistory::Record MemoryHistory::takeBack() {
    const std::size_t last = times_.size() - 1;
    Record record{times_[last], orders_[last], kNoReplay, 0};
    const std::uint32_t row = eventRows_[last];
    const AllocationLife block = rows_[row];
    const AllocationDef& def = defs_[block.def];
    const std::uint64_t id = idOf(block);
    if (steps_[last].death()) {
        record.replay = kDeath;
        record.payload = id;
        if (hasAddress(def)) {
            blockShapes_.removeLast({def.address, def.bytes, block.born, freed_[row]});
        }
        freed_.writable(row) = -1;
        ++lives_[row / kLivesRows].open;
        alive_.undeath(id, row);
    } else {
        record.replay = block.replay;
        record.payload = block.def;
        alive_.unbirth(id);
        rows_.truncate(row);
        freed_.truncate(row);
        --lives_.back().open;
        if (row % kLivesRows == 0) {
            lives_.pop_back();
        }
    }
    times_.truncate(last);
    steps_.truncate(last);
    eventRows_.truncate(last);
    orders_.truncate(last);
    return record;
}

HistoryViews MemoryHistory::views() {
    HistoryViews views;
    views.events = {times_.view(), steps_.view(), eventRows_.view()};
    views.orders = orders_.view();
    views.device = device_.view();
    views.host = host_.view();
    views.defs = defs_.view();
    views.rows = rows_.view();
    views.freed = freed_.view();
    views.shapes = shapes_.view();
    views.replays = replays_.view();
    views.templates = templates_;
    views.blockShapes = blockShapes_.view();
    views.addresses = addresses_.view();
    views.lives = lives_;
    return views;
}

} // namespace vitrine::profiler

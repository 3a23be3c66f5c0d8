// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline_snapshot.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>

#include "profiler/peaks.h"
#include "profiler/stack_layout.h"
#include "profiler/stored_pyramid.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

constexpr int kMaxColumns = 1 << 20;
constexpr std::uint64_t kScannedEvents = 65536;
constexpr int kMaxScopeDepth = 64;

/// Border `index` of `count` equal pieces of [begin, end).
template <class Number> Number border(Number begin, Number end, int index, int count) {
    return begin + static_cast<Number>(static_cast<__int128>(end - begin) * index / count);
}

/// Index of the last key that is not above `limit`, in rising order; -1 when there is none.
template <class Number, class KeyAt> std::ptrdiff_t lastNotAbove(std::size_t size, Number limit, KeyAt keyAt) {
    std::size_t low = 0;
    std::size_t high = size;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (keyAt(middle) <= limit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return static_cast<std::ptrdiff_t>(low) - 1;
}

} // namespace

struct TimelineSnapshot::AllocationSource final : RowSource<AllocationRow> {
    explicit AllocationSource(const TimelineSnapshot& snapshot) : timeline(snapshot) {}
    std::size_t rowCount() const override { return timeline.parts_.history.rows.size(); }
    AllocationRow rowAt(std::size_t index) const override { return timeline.allocation(index); }
    const TimelineSnapshot& timeline;
};

struct TimelineSnapshot::ScopeSource final : RowSource<ScopeRow> {
    explicit ScopeSource(const TimelineSnapshot& snapshot) : timeline(snapshot) {}
    std::size_t rowCount() const override { return timeline.parts_.scopes.refs.size(); }
    ScopeRow rowAt(std::size_t index) const override { return timeline.scopeRow(timeline.parts_.scopes.refs[index]); }
    const TimelineSnapshot& timeline;
};

struct TimelineSnapshot::Lazy {
    explicit Lazy(const TimelineSnapshot& timeline) : allocations(timeline), scopes(timeline) {}

    AllocationSource allocations;
    ScopeSource scopes;

    std::mutex mutex; ///< of scopeRows
    std::unordered_map<std::uint64_t, std::unique_ptr<const ScopeRow>> scopeRows;

    std::once_flag stackOnce, stackShapesOnce, openOnce, openStackOnce, scopeIdsOnce, replayIdsOnce;
    std::vector<std::uint64_t> stack;
    std::uint64_t stackExtent = 0;
    ShapeIndexView stackShapes;
    ShapeList openShapes, openStackShapes;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> scopeIds, replayIds;
};

TimelineSnapshot::TimelineSnapshot(TimelineParts parts)
    : parts_(std::move(parts)), lazy_(std::make_unique<Lazy>(*this)) {}

TimelineSnapshot::~TimelineSnapshot() = default;

// ---- Events and totals

std::uint64_t TimelineSnapshot::events() const {
    return parts_.stored ? storedEvents(*parts_.stored) : parts_.history.events.size();
}

TimeNs TimelineSnapshot::eventTime(std::uint64_t index) const {
    const EventColumns& events = parts_.history.events;
    return events.size() == 0 ? 0 : events.times[std::min<std::uint64_t>(index, events.size() - 1)];
}

std::uint64_t TimelineSnapshot::eventsBefore(TimeNs time) const {
    return parts_.history.events.before(time);
}

MemoryColumn TimelineSnapshot::window(const PyramidView& pyramid, TimeNs begin, std::uint64_t first,
                                      std::uint64_t last) const {
    const EventColumns& events = parts_.history.events;
    if (first >= last) {
        const MemoryState state = pyramid.stateBefore(events, first);
        return {state.total, state.total, begin, state.bytes, 0};
    }
    return pyramid.extremes(events, first, last,
                            events.times[first] > begin ? std::optional<TimeNs>(begin) : std::nullopt);
}

std::vector<MemoryColumn> TimelineSnapshot::windows(const PyramidView& pyramid, TimeNs begin, TimeNs end,
                                                    int columns) const {
    std::vector<MemoryColumn> out;
    columns = std::clamp(columns, 0, kMaxColumns);
    end = std::max(begin, end);
    out.reserve(static_cast<std::size_t>(columns));
    std::uint64_t first = parts_.history.events.before(begin);
    for (int i = 0; i < columns; ++i) {
        const std::uint64_t last = parts_.history.events.before(border(begin, end, i + 1, columns), first);
        out.push_back(window(pyramid, border(begin, end, i, columns), first, last));
        first = last;
    }
    return out;
}

std::vector<MemoryColumn> TimelineSnapshot::query(TimeNs begin, TimeNs end, int columns) const {
    if (parts_.stored) {
        return storedColumns(*parts_.stored, begin, end, std::clamp(columns, 0, kMaxColumns));
    }
    return windows(parts_.history.device, begin, end, columns);
}

std::vector<MemoryColumn> TimelineSnapshot::hostQuery(TimeNs begin, TimeNs end, int columns) const {
    return windows(parts_.history.host, begin, end, columns);
}

std::vector<MemoryColumn> TimelineSnapshot::queryEvents(std::uint64_t first, std::uint64_t last, int columns) const {
    const EventColumns& events = parts_.history.events;
    last = std::min<std::uint64_t>(last, events.size());
    first = std::min(first, last);
    columns = std::clamp(columns, 0, kMaxColumns);
    std::vector<MemoryColumn> out;
    out.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) {
        const std::uint64_t low = border(first, last, i, columns);
        const std::uint64_t high = border(first, last, i + 1, columns);
        if (low < high) {
            out.push_back(parts_.history.device.extremes(events, low, high));
        } else {
            out.push_back(window(parts_.history.device, low == 0 ? 0 : events.times[low - 1], low, low));
        }
    }
    return out;
}

base::CategoryBytes TimelineSnapshot::at(TimeNs time) const {
    if (parts_.stored) {
        return storedAt(*parts_.stored, time);
    }
    const EventColumns& events = parts_.history.events;
    return parts_.history.device.stateBefore(events, events.upTo(time)).bytes;
}

base::CategoryBytes TimelineSnapshot::hostAt(TimeNs time) const {
    const EventColumns& events = parts_.history.events;
    return parts_.history.host.stateBefore(events, events.upTo(time)).bytes;
}

MemoryColumn TimelineSnapshot::peak(TimeNs begin, TimeNs end) const {
    return query(begin, end, 1).front();
}

std::vector<TimeNs> TimelineSnapshot::peaks(std::size_t limit) const {
    if (parts_.stored) {
        return findPeaks(storedCurve(*parts_.stored), limit);
    }
    return findPeaks(curveOf(parts_.history.device, parts_.history.events), limit);
}

RangeTotals TimelineSnapshot::totals(TimeNs begin, TimeNs end) const {
    const EventColumns& events = parts_.history.events;
    const PyramidView& pyramid = parts_.history.device;
    end = std::max(begin, end);
    const std::uint64_t first = events.before(begin);
    const std::uint64_t last = events.before(end, first);
    const LeafSums before = pyramid.sumsBefore(events, first);
    LeafSums sums = last - first <= kScannedEvents ? before : pyramid.sumsBefore(events, last);
    RangeTotals totals;
    if (last - first <= kScannedEvents) {
        // Adding up the range itself: a difference of two large sums would lose the digits of a short one.
        sums.area = 0;
        sums.time = begin;
        pyramid.extend(events, first, last, sums);
        totals.byteNs = sums.area;
    } else {
        totals.byteNs =
            sums.area - before.area - static_cast<double>(before.total) * static_cast<double>(begin - before.time);
    }
    totals.byteNs += static_cast<double>(sums.total) * static_cast<double>(end - sums.time);
    totals.births = sums.births - before.births;
    totals.deaths = sums.deaths - before.deaths;
    return totals;
}

// ---- Allocations

AllocationRow TimelineSnapshot::allocation(std::size_t index) const {
    const HistoryViews& history = parts_.history;
    const BlockRow& row = history.rows[index];
    const BlockDef& def = history.defs[row.def];
    const std::uint64_t base = row.replay == kNoReplay ? 0 : history.replays[row.replay].firstId;
    AllocationRow out;
    out.id = base + def.id;
    out.address = def.address;
    out.bytes = def.bytes;
    out.born = row.born;
    out.freed = history.freed[index];
    out.scope = base + def.scope;
    out.name = def.name;
    out.category = def.category;
    out.space = def.space;
    out.dtype = def.dtype;
    out.rank = def.rank;
    out.shape = history.shapes[def.shape];
    return out;
}

LazyRows<AllocationRow> TimelineSnapshot::allocations() const {
    return LazyRows<AllocationRow>(lazy_->allocations);
}

std::optional<std::size_t> TimelineSnapshot::findAllocation(std::uint64_t id) const {
    const HistoryViews& history = parts_.history;
    for (std::size_t index = history.rows.size(); index-- > 0;) {
        const BlockRow& row = history.rows[index];
        const std::uint64_t base = row.replay == kNoReplay ? 0 : history.replays[row.replay].firstId;
        if (base + history.defs[row.def].id == id) {
            return index;
        }
    }
    return std::nullopt;
}

std::vector<std::size_t> TimelineSnapshot::aliveAt(TimeNs time) const {
    const HistoryViews& history = parts_.history;
    std::vector<std::size_t> alive;
    const auto born = static_cast<std::size_t>(
        lastNotAbove(history.rows.size(), time, [&](std::size_t i) { return history.rows[i].born; }) + 1);
    for (std::size_t first = 0; first < born; first += kLivesRows) {
        const HistoryViews::Lives& lives = history.lives[first / kLivesRows];
        if (lives.open == 0 && lives.latest <= time) {
            continue;
        }
        const std::size_t last = std::min(first + kLivesRows, born);
        for (std::size_t index = first; index < last; ++index) {
            const TimeNs freed = history.freed[index];
            if (freed >= 0 && freed <= time) {
                continue;
            }
            const BlockDef& def = history.defs[history.rows[index].def];
            if (def.space == base::MemorySpace::Device) {
                alive.push_back(index);
            }
        }
    }
    return largestFirst(std::move(alive));
}

std::vector<std::size_t> TimelineSnapshot::largestFirst(std::vector<std::size_t> rows) const {
    const HistoryViews& history = parts_.history;
    std::vector<std::pair<std::uint64_t, std::size_t>> keys; // bytes, row
    keys.reserve(rows.size());
    for (const std::size_t row : rows) {
        keys.emplace_back(history.defs[history.rows[row].def].bytes, row);
    }
    std::ranges::sort(keys, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::ranges::transform(keys, rows.begin(), [](const auto& key) { return key.second; });
    return rows;
}

base::CategoryBytes TimelineSnapshot::atEvent(std::uint64_t count) const {
    const EventColumns& events = parts_.history.events;
    return parts_.history.device.stateBefore(events, std::min<std::uint64_t>(count, events.size())).bytes;
}

std::vector<std::size_t> TimelineSnapshot::aliveAtEvent(std::uint64_t count) const {
    const EventColumns& events = parts_.history.events;
    count = std::min<std::uint64_t>(count, events.size());
    if (count == 0) {
        return {};
    }
    // From those alive at the end of the instant back to the event.
    const TimeNs time = events.times[count - 1];
    std::vector<std::size_t> rows = aliveAt(time);
    std::set<std::size_t> born;
    std::set<std::size_t> died;
    for (std::uint64_t i = count; i < events.size() && events.times[i] == time; ++i) {
        const std::size_t row = events.rows[i];
        if (events.steps[i].space() == base::MemorySpace::Device) {
            (events.steps[i].death() ? died : born).insert(row);
        }
    }
    std::erase_if(rows, [&](std::size_t row) { return born.contains(row); });
    std::ranges::set_difference(died, born, std::back_inserter(rows));
    return largestFirst(std::move(rows));
}

std::uint64_t TimelineSnapshot::eventsBeforeOutOfMemory(std::size_t index) const {
    const FailurePlace& place = parts_.failures.begin()[index];
    std::uint64_t count = parts_.history.events.before(place.time);
    const EventColumns& events = parts_.history.events;
    while (count < events.size() && events.times[count] == place.time && parts_.history.orders[count] < place.order) {
        ++count;
    }
    return count;
}

const std::vector<std::uint64_t>& TimelineSnapshot::stack() const {
    std::call_once(lazy_->stackOnce, [this] {
        lazy_->stack = stackRows(parts_.history);
        for (std::size_t row = 0; row < lazy_->stack.size(); ++row) {
            const BlockDef& def = parts_.history.defs[parts_.history.rows[row].def];
            if (def.space == base::MemorySpace::Device) {
                lazy_->stackExtent = std::max(lazy_->stackExtent, lazy_->stack[row] + def.bytes);
            }
        }
    });
    return lazy_->stack;
}

std::uint64_t TimelineSnapshot::compactAddress(std::uint64_t address) const {
    return parts_.history.addresses.compact(address);
}

std::uint64_t TimelineSnapshot::extent(bool byAddress) const {
    if (byAddress) {
        return parts_.history.addresses.extent();
    }
    stack();
    return lazy_->stackExtent;
}

std::uint64_t TimelineSnapshot::stackedAddress(std::size_t row) const {
    return stack()[row];
}

BlockBox TimelineSnapshot::box(std::uint32_t index, bool byAddress) const {
    const HistoryViews& history = parts_.history;
    const BlockRow& row = history.rows[index];
    const BlockDef& def = history.defs[row.def];
    const TimeNs freed = history.freed[index];
    return {byAddress ? def.address : lazy_->stack[index], def.bytes, row.born, freed < 0 ? parts_.end : freed};
}

std::vector<AllocationShape> TimelineSnapshot::shapes(TimeNs begin, TimeNs end, double nsPerPixel, double bytesPerPixel,
                                                      bool byAddress) const {
    if (!byAddress) {
        stack();
        std::call_once(lazy_->stackShapesOnce,
                       [this] { lazy_->stackShapes = stackShapes(parts_.history, lazy_->stack); });
    }
    const BoxOf boxOf = [this, byAddress](std::uint32_t row) { return box(row, byAddress); };
    ShapeList& open = byAddress ? lazy_->openShapes : lazy_->openStackShapes;
    std::call_once(byAddress ? lazy_->openOnce : lazy_->openStackOnce, [&] {
        std::vector<std::size_t> rows = aliveAt(parts_.end);
        std::ranges::sort(rows);
        ShapeListBuilder list;
        for (const std::size_t row : rows) {
            if (!byAddress || hasAddress(parts_.history.defs[parts_.history.rows[row].def])) {
                list.add(static_cast<std::uint32_t>(row), boxOf);
            }
        }
        open = list.view();
    });
    std::vector<const ShapeList*> lists{&open};
    for (const ShapeList& list : (byAddress ? parts_.history.blockShapes : lazy_->stackShapes).lists) {
        lists.push_back(&list);
    }
    return collectShapes(lists, boxOf, {begin, end, nsPerPixel, bytesPerPixel});
}

// ---- Scopes and names

ScopeRow TimelineSnapshot::scopeRow(const ScopeRef& ref) const {
    if (ref.replay == kNoReplay) {
        const ScopeDef& def = parts_.scopes.defs[ref.item];
        const ScopeFinish& finish = parts_.scopes.finishes[ref.item];
        return {def.id,     def.parent, def.kind,   def.name,     def.index,
                def.tokens, def.begin,  finish.end, finish.bytes, finish.flops};
    }
    const ReplayInfo& replay = parts_.history.replays[ref.replay];
    const TemplateInfo& step = *parts_.history.templates[replay.step];
    const TemplateInfo::Scope& scope = step.scopes[ref.item];
    const bool root = scope.begin.id.value == 0;
    return {replay.firstId + scope.begin.id.value,
            root ? replay.parent : replay.firstId + scope.begin.parent.value,
            scope.begin.kind,
            scope.begin.name.value,
            root ? replay.index : scope.begin.index,
            scope.begin.tokens,
            ref.begin,
            scope.end < 0 ? replay.end : expandTime(replay, step.duration, scope.end),
            scope.bytes,
            scope.flops};
}

LazyRows<ScopeRow> TimelineSnapshot::scopes() const {
    return LazyRows<ScopeRow>(lazy_->scopes);
}

std::optional<std::uint32_t> TimelineSnapshot::replayOf(std::uint64_t id) const {
    const auto& replays = parts_.history.replays;
    std::ptrdiff_t found = -1;
    if (parts_.scopes.replaysRise) {
        found = lastNotAbove(replays.size(), id, [&](std::size_t i) { return replays[i].firstId; });
    } else {
        auto& ids = lazy_->replayIds;
        std::call_once(lazy_->replayIdsOnce, [&] {
            for (std::size_t i = 0; i < replays.size(); ++i) {
                ids.emplace_back(replays[i].firstId, static_cast<std::uint32_t>(i));
            }
            std::ranges::sort(ids);
        });
        found = lastNotAbove(ids.size(), id, [&](std::size_t i) { return ids[i].first; });
        found = found < 0 ? found : static_cast<std::ptrdiff_t>(ids[static_cast<std::size_t>(found)].second);
    }
    if (found < 0) {
        return std::nullopt;
    }
    const ReplayInfo& replay = replays[static_cast<std::size_t>(found)];
    if (id - replay.firstId >= parts_.history.templates[replay.step]->idCount) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(found);
}

std::optional<ScopeRef> TimelineSnapshot::findScope(std::uint64_t id) const {
    const auto& defs = parts_.scopes.defs;
    std::ptrdiff_t found = -1;
    if (parts_.scopes.idsRise) {
        found = lastNotAbove(defs.size(), id, [&](std::size_t i) { return defs[i].id; });
    } else {
        auto& ids = lazy_->scopeIds;
        std::call_once(lazy_->scopeIdsOnce, [&] {
            for (std::size_t i = 0; i < defs.size(); ++i) {
                ids.emplace_back(defs[i].id, static_cast<std::uint32_t>(i));
            }
            std::ranges::sort(ids);
        });
        found = lastNotAbove(ids.size(), id, [&](std::size_t i) { return ids[i].first; });
        found = found < 0 ? found : static_cast<std::ptrdiff_t>(ids[static_cast<std::size_t>(found)].second);
    }
    if (found >= 0 && defs[static_cast<std::size_t>(found)].id == id) {
        return ScopeRef{defs[static_cast<std::size_t>(found)].begin, static_cast<std::uint32_t>(found), kNoReplay};
    }
    const auto replay = replayOf(id);
    if (!replay) {
        return std::nullopt;
    }
    const ReplayInfo& info = parts_.history.replays[*replay];
    const TemplateInfo& step = *parts_.history.templates[info.step];
    const auto scope = std::ranges::find_if(
        step.scopes, [&](const TemplateInfo::Scope& s) { return info.firstId + s.begin.id.value == id; });
    if (scope == step.scopes.end()) {
        return std::nullopt;
    }
    return ScopeRef{expandTime(info, step.duration, scope->begin.time),
                    static_cast<std::uint32_t>(std::distance(step.scopes.begin(), scope)), *replay};
}

const ScopeRow* TimelineSnapshot::scope(std::uint64_t id) const {
    const std::lock_guard lock(lazy_->mutex);
    const auto known = lazy_->scopeRows.find(id);
    if (known != lazy_->scopeRows.end()) {
        return known->second.get();
    }
    const std::optional<ScopeRef> ref = findScope(id);
    if (!ref) {
        return nullptr;
    }
    auto& row = lazy_->scopeRows[id];
    row = std::make_unique<const ScopeRow>(scopeRow(*ref));
    return row.get();
}

std::string TimelineSnapshot::scopePath(std::uint64_t id) const {
    std::vector<std::string> parts;
    for (int depth = 0; depth < kMaxScopeDepth; ++depth) {
        const std::optional<ScopeRef> ref = findScope(id);
        if (!ref) {
            break;
        }
        const ScopeRow row = scopeRow(*ref);
        if (row.kind == base::ScopeKind::Step && row.index >= 0) {
            parts.push_back(fmt::format("step {}", row.index));
        } else if (row.kind == base::ScopeKind::Layer && row.index >= 0) {
            parts.push_back(fmt::format("layer {}", row.index));
        } else if (row.kind != base::ScopeKind::Run) {
            parts.emplace_back(text(row.name));
        }
        if (row.parent == 0 || row.parent == id) {
            break;
        }
        id = row.parent;
    }
    std::ranges::reverse(parts);
    return fmt::format("{}", fmt::join(parts, " / "));
}

std::string_view TimelineSnapshot::text(std::uint32_t name) const {
    const auto found = parts_.strings->find(name);
    return found == parts_.strings->end() ? std::string_view() : std::string_view(found->second);
}

// ---- The rest

std::span<const base::OutOfMemoryEvent> TimelineSnapshot::outOfMemory() const {
    return {parts_.outOfMemory.begin(), parts_.outOfMemory.size()};
}

std::vector<std::pair<TimeNs, double>> TimelineSnapshot::counter(std::string_view name) const {
    std::vector<std::pair<TimeNs, double>> samples;
    if (const auto found = parts_.counters.find(name); found != parts_.counters.end()) {
        samples.reserve(found->second.size());
        for (const CounterSample& sample : found->second) {
            samples.emplace_back(sample.time, sample.value);
        }
    }
    return samples;
}

std::vector<std::string> TimelineSnapshot::counters() const {
    std::vector<std::string> names;
    for (const auto& [name, samples] : parts_.counters) {
        names.push_back(name);
    }
    return names;
}

std::span<const base::SpanEvent> TimelineSnapshot::spans() const {
    return {parts_.spans.begin(), parts_.spans.size()};
}

std::span<const base::TokenEvent> TimelineSnapshot::tokens() const {
    return {parts_.tokens.begin(), parts_.tokens.size()};
}

} // namespace vitrine::profiler

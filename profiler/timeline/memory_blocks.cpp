// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The blocks of the memory facet: rows, what is alive, layouts and shapes.

#include <algorithm>
#include <iterator>
#include <set>

#include "profiler/timeline/memory_lazy.h"

namespace vitrine::profiler {

using base::TimeNs;

AllocationRow MemoryFacet::allocation(std::size_t index) const {
    const HistoryViews& history = parts_.history;
    const AllocationLife row = history.events.life(static_cast<std::uint32_t>(index));
    const AllocationDef& def = history.defs[row.def];
    const std::uint64_t base = history.events.firstIdOf(row);
    AllocationRow out;
    out.id = base + def.id;
    out.address = def.address;
    out.bytes = def.bytes;
    out.born = row.born;
    out.freed = history.events.freed(static_cast<std::uint32_t>(index));
    out.scope = base + def.scope;
    out.name = def.name;
    out.category = def.category;
    out.space = def.space;
    out.dtype = def.dtype;
    out.dimensions = def.dimensions;
    out.shape = history.shapes[def.shape];
    out.format = def.format;
    return out;
}

LazyRows<AllocationRow> MemoryFacet::allocations() const {
    return LazyRows<AllocationRow>(lazy_->allocations);
}

std::optional<std::size_t> MemoryFacet::findAllocation(std::uint64_t id) const {
    const HistoryViews& history = parts_.history;
    for (std::size_t group = history.lives.size(); group-- > 0;) {
        if (id < history.lives[group].lowestId || id > history.lives[group].highestId) {
            continue; // ids rise with time, so almost every group is out
        }
        const std::size_t first = group * kLivesRows;
        for (std::size_t index = std::min(first + kLivesRows, history.events.rows()); index-- > first;) {
            const AllocationLife row = history.events.life(static_cast<std::uint32_t>(index));
            if (history.events.firstIdOf(row) + history.defs[row.def].id == id) {
                return index;
            }
        }
    }
    return std::nullopt;
}

std::vector<std::size_t> MemoryFacet::aliveAt(TimeNs time) const {
    const HistoryViews& history = parts_.history;
    std::vector<std::size_t> alive;
    const std::size_t born = history.events.rowsUpTo(time);
    for (std::size_t first = 0; first < born; first += kLivesRows) {
        const LivesOfRows& lives = history.lives[first / kLivesRows];
        if (lives.open == 0 && lives.latest <= time) {
            continue;
        }
        const std::size_t last = std::min(first + kLivesRows, born);
        for (std::size_t index = first; index < last; ++index) {
            const auto row = static_cast<std::uint32_t>(index);
            const TimeNs freed = history.events.freed(row);
            if (freed >= 0 && freed <= time) {
                continue;
            }
            const AllocationDef& def = history.defs[history.events.life(row).def];
            if (def.space == base::MemorySpace::Device) {
                alive.push_back(index);
            }
        }
    }
    return largestFirst(std::move(alive));
}

std::vector<std::size_t> MemoryFacet::largestFirst(std::vector<std::size_t> rows) const {
    const HistoryViews& history = parts_.history;
    std::vector<std::pair<std::uint64_t, std::size_t>> keys; // bytes, row
    keys.reserve(rows.size());
    for (const std::size_t row : rows) {
        keys.emplace_back(history.defs[history.events.life(static_cast<std::uint32_t>(row)).def].bytes, row);
    }
    std::ranges::sort(keys, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::ranges::transform(keys, rows.begin(), [](const auto& key) { return key.second; });
    return rows;
}

base::CategoryBytes MemoryFacet::atEvent(std::uint64_t count) const {
    const MemoryEvents& events = parts_.history.events;
    return parts_.history.device.stateBefore(events, std::min<std::uint64_t>(count, events.size())).bytes;
}

std::vector<std::size_t> MemoryFacet::aliveAtEvent(std::uint64_t count) const {
    const MemoryEvents& events = parts_.history.events;
    count = std::min<std::uint64_t>(count, events.size());
    if (count == 0) {
        return {};
    }
    // From those alive at the end of the instant back to the event.
    const TimeNs time = events.time(count - 1);
    std::vector<std::size_t> rows = aliveAt(time);
    std::set<std::size_t> born;
    std::set<std::size_t> died;
    events.each(count, events.upTo(time), [&](const MemoryEvent& event) {
        if (event.change.space() == base::MemorySpace::Device) {
            (event.change.death() ? died : born).insert(event.row);
        }
    });
    std::erase_if(rows, [&](std::size_t row) { return born.contains(row); });
    std::ranges::set_difference(died, born, std::back_inserter(rows));
    return largestFirst(std::move(rows));
}

std::uint64_t MemoryFacet::eventsBeforeOutOfMemory(std::size_t index) const {
    const FailurePlace& place = parts_.failures.begin()[index];
    std::uint64_t count = parts_.history.events.before(place.time);
    const MemoryEvents& events = parts_.history.events;
    while (count < events.size() && events.time(count) == place.time && events.order(count) < place.order) {
        ++count;
    }
    return count;
}

const StackLayout& MemoryFacet::stack() const {
    std::call_once(lazy_->stackOnce, [this] { lazy_->stack = stackLayout(parts_.history, lazy_->stackedEvents); });
    return lazy_->stack;
}

double MemoryFacet::stackedPart() const {
    const auto all = static_cast<double>(std::max<std::uint64_t>(1, parts_.history.events.size()));
    return static_cast<double>(lazy_->stackedEvents.load(std::memory_order_relaxed)) / all;
}

std::uint64_t MemoryFacet::compactAddress(std::uint64_t address) const {
    return parts_.history.addresses.compact(address);
}

std::uint64_t MemoryFacet::extent(bool byAddress) const {
    if (byAddress) {
        return parts_.history.addresses.extent();
    }
    return stack().extent;
}

std::uint64_t MemoryFacet::stackedAddress(std::size_t row) const {
    return stack().addresses[row];
}

BlockBox MemoryFacet::box(std::uint32_t index, bool byAddress) const {
    const HistoryViews& history = parts_.history;
    const AllocationLife row = history.events.life(index);
    const AllocationDef& def = history.defs[row.def];
    const TimeNs freed = history.events.freed(index);
    return {byAddress ? def.address : lazy_->stack.addresses[index], def.bytes, row.born,
            freed < 0 ? parts_.end : freed};
}

std::vector<AllocationShape> MemoryFacet::shapes(TimeNs begin, TimeNs end, double nsPerPixel, double bytesPerPixel,
                                                 bool byAddress) const {
    if (!byAddress) {
        stack();
    }
    const BoxOf boxOf = [this, byAddress](std::uint32_t row) { return box(row, byAddress); };
    ShapeList& open = byAddress ? lazy_->openShapes : lazy_->openStackShapes;
    std::call_once(byAddress ? lazy_->openOnce : lazy_->openStackOnce, [&] {
        std::vector<std::size_t> rows = aliveAt(parts_.end);
        std::ranges::sort(rows);
        ShapeListBuilder list;
        for (const std::size_t row : rows) {
            if (!byAddress ||
                hasAddress(parts_.history.defs[parts_.history.events.life(static_cast<std::uint32_t>(row)).def])) {
                list.add(static_cast<std::uint32_t>(row), boxOf);
            }
        }
        open = list.view();
    });
    std::vector<const ShapeList*> lists{&open};
    for (const ShapeList& list : (byAddress ? parts_.history.blockShapes : lazy_->stack.shapes).lists) {
        lists.push_back(&list);
    }
    return collectShapes(lists, boxOf, {begin, end, nsPerPixel, bytesPerPixel});
}

} // namespace vitrine::profiler

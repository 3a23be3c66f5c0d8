// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/memory_facet.h"

#include <algorithm>

#include "profiler/timeline/memory_lazy.h"
#include "profiler/timeline/peaks.h"
#include "profiler/timeline/stored_pyramid.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

constexpr int kMaxColumns = 1 << 20;
constexpr std::uint64_t kScannedEvents = 65536;

/// Border `index` of `count` equal pieces of [begin, end).
template <class Number> Number border(Number begin, Number end, int index, int count) {
    return begin + static_cast<Number>(static_cast<__int128>(end - begin) * index / count);
}

} // namespace

MemoryFacet::MemoryFacet(MemoryParts parts) : parts_(std::move(parts)), lazy_(std::make_unique<Lazy>(*this)) {}

MemoryFacet::~MemoryFacet() = default;

bool MemoryFacet::complete() const {
    return parts_.stored == nullptr;
}

std::uint64_t MemoryFacet::events() const {
    return parts_.stored ? storedEvents(*parts_.stored) : parts_.history.events.size();
}

TimeNs MemoryFacet::eventTime(std::uint64_t index) const {
    const MemoryEvents& events = parts_.history.events;
    return events.size() == 0 ? 0 : events.time(std::min<std::uint64_t>(index, events.size() - 1));
}

std::uint64_t MemoryFacet::eventsBefore(TimeNs time) const {
    return parts_.history.events.before(time);
}

MemoryColumn MemoryFacet::window(const PyramidView& pyramid, TimeNs begin, std::uint64_t first,
                                 std::uint64_t last) const {
    const MemoryEvents& events = parts_.history.events;
    if (first >= last) {
        const MemoryState state = pyramid.stateBefore(events, first);
        return {state.total, state.total, begin, state.bytes, 0};
    }
    return pyramid.extremes(events, first, last,
                            events.time(first) > begin ? std::optional<TimeNs>(begin) : std::nullopt);
}

std::vector<MemoryColumn> MemoryFacet::windows(const PyramidView& pyramid, TimeNs begin, TimeNs end,
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

/// Marks the columns, equal pieces of [begin, end), that reach beyond the first loss of memory records.
std::vector<MemoryColumn> MemoryFacet::marked(std::vector<MemoryColumn> columns, TimeNs begin, TimeNs end) const {
    if (const std::optional<TimeNs> from = parts_.incompleteFrom) {
        const int count = static_cast<int>(columns.size());
        for (int i = 0; i < count; ++i) {
            columns[static_cast<std::size_t>(i)].incomplete = border(begin, std::max(begin, end), i + 1, count) > *from;
        }
    }
    return columns;
}

std::vector<MemoryColumn> MemoryFacet::query(TimeNs begin, TimeNs end, int columns) const {
    if (parts_.stored) {
        return marked(storedColumns(*parts_.stored, begin, end, std::clamp(columns, 0, kMaxColumns)), begin, end);
    }
    return marked(windows(parts_.history.device, begin, end, columns), begin, end);
}

std::vector<MemoryColumn> MemoryFacet::hostQuery(TimeNs begin, TimeNs end, int columns) const {
    return marked(windows(parts_.history.host, begin, end, columns), begin, end);
}

std::vector<MemoryColumn> MemoryFacet::queryEvents(std::uint64_t first, std::uint64_t last, int columns) const {
    const MemoryEvents& events = parts_.history.events;
    last = std::min<std::uint64_t>(last, events.size());
    first = std::min(first, last);
    columns = std::clamp(columns, 0, kMaxColumns);
    std::vector<MemoryColumn> out;
    out.reserve(static_cast<std::size_t>(columns));
    const std::optional<TimeNs> incomplete = parts_.incompleteFrom;
    for (int i = 0; i < columns; ++i) {
        const std::uint64_t low = border(first, last, i, columns);
        const std::uint64_t high = border(first, last, i + 1, columns);
        if (low < high) {
            out.push_back(parts_.history.device.extremes(events, low, high));
        } else {
            out.push_back(window(parts_.history.device, low == 0 ? 0 : events.time(low - 1), low, low));
        }
        out.back().incomplete = incomplete && high > 0 && events.time(high - 1) >= *incomplete;
    }
    return out;
}

base::CategoryBytes MemoryFacet::at(TimeNs time) const {
    if (parts_.stored) {
        return storedAt(*parts_.stored, time);
    }
    const MemoryEvents& events = parts_.history.events;
    return parts_.history.device.stateBefore(events, events.upTo(time)).bytes;
}

base::CategoryBytes MemoryFacet::hostAt(TimeNs time) const {
    const MemoryEvents& events = parts_.history.events;
    return parts_.history.host.stateBefore(events, events.upTo(time)).bytes;
}

MemoryColumn MemoryFacet::peak(TimeNs begin, TimeNs end) const {
    return query(begin, end, 1).front();
}

std::vector<TimeNs> MemoryFacet::peaks(std::size_t limit) const {
    if (parts_.stored) {
        return findPeaks(storedCurve(*parts_.stored), limit);
    }
    return findPeaks(curveOf(parts_.history.device, parts_.history.events), limit);
}

RangeTotals MemoryFacet::totals(TimeNs begin, TimeNs end) const {
    const MemoryEvents& events = parts_.history.events;
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

std::span<const base::OutOfMemoryEvent> MemoryFacet::outOfMemory() const {
    return {parts_.outOfMemory.begin(), parts_.outOfMemory.size()};
}

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What only the sources of a snapshot share: the row sources and what a snapshot makes when it is first asked for.

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/timeline/stack_layout.h"
#include "profiler/timeline/timeline_snapshot.h"

namespace vitrine::profiler {

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

class TimelineSnapshot::AllocationSource final : public RowSource<AllocationRow> {
public:
    explicit AllocationSource(const TimelineSnapshot& snapshot) : timeline_(snapshot) {}
    std::size_t rowCount() const override { return timeline_.parts_.history.rows.size(); }
    AllocationRow rowAt(std::size_t index) const override { return timeline_.allocation(index); }

private:
    const TimelineSnapshot& timeline_;
};

class TimelineSnapshot::ScopeSource final : public RowSource<ScopeRow> {
public:
    ScopeSource(const TimelineSnapshot& snapshot, const ScopeRefs::View& refs) : timeline_(snapshot), refs_(refs) {}
    std::size_t rowCount() const override { return refs_.size(); }
    ScopeRow rowAt(std::size_t index) const override { return timeline_.scopeRow(refs_[index]); }

private:
    const TimelineSnapshot& timeline_;
    const ScopeRefs::View& refs_; ///< of the snapshot
};

struct TimelineSnapshot::Lazy {
    explicit Lazy(const TimelineSnapshot& timeline)
        : allocations(timeline), scopes(timeline, timeline.parts_.scopes.all),
          steps(timeline, timeline.parts_.scopes.steps), phases(timeline, timeline.parts_.scopes.phases) {}

    AllocationSource allocations;
    ScopeSource scopes, steps, phases;

    std::mutex mutex; ///< of the two maps
    std::unordered_map<std::uint64_t, std::unique_ptr<const ScopeRow>> scopeRows;
    std::map<std::string, CounterIndex, std::less<>> counters;

    std::once_flag stackOnce, openOnce, openStackOnce, scopeIdsOnce, replayIdsOnce;
    std::atomic<std::uint64_t> stackedEvents{0};
    StackLayout stack;
    ShapeList openShapes, openStackShapes;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> scopeIds, replayIds;
};

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/pyramid.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace vitrine::profiler {

namespace {

template <class Before> std::uint64_t partitionPoint(std::uint64_t size, Before isBefore) {
    std::uint64_t low = 0;
    std::uint64_t high = size;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (isBefore(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// Events below the node of one level.
constexpr std::uint64_t spanOf(std::size_t level) {
    std::uint64_t span = kLeafEvents;
    for (std::size_t i = 0; i < level; ++i) {
        span *= kFanOut;
    }
    return span;
}

static_assert(EventColumns::kBlock % kLeafEvents == 0);

std::uint64_t changeOf(MemoryChange step, MemorySide side) {
    const std::uint64_t bytes = sideOf(step.space()) == side ? step.bytes() : 0;
    return step.death() ? std::uint64_t{0} - bytes : bytes;
}

MemoryState stateAfter(const PyramidNode& node) {
    return {std::accumulate(node.atEnd.begin(), node.atEnd.end(), std::uint64_t{0}), node.atEnd};
}

} // namespace

std::uint64_t EventColumns::before(base::TimeNs time, std::uint64_t atLeast) const {
    // Doubling steps first: the next pixel's border is near.
    std::uint64_t low = atLeast;
    std::uint64_t step = 1;
    while (low + step <= size() && times[low + step - 1] < time) {
        low += step;
        step *= 2;
    }
    const std::uint64_t high = std::min<std::uint64_t>(low + step - 1, size());
    return low + partitionPoint(high - low, [&](std::uint64_t index) { return times[low + index] < time; });
}

std::uint64_t EventColumns::upTo(base::TimeNs time) const {
    return partitionPoint(size(), [&](std::uint64_t index) { return times[index] <= time; });
}

/// The extremes so far; where the largest total was seen is looked up at the end.
struct PyramidView::Fold {
    std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max = 0;
    base::TimeNs maxTime = 0;
    const PyramidNode* node = nullptr; ///< of the largest, else the state after `events` events
    std::uint64_t events = 0;
    bool any = false;

    void add(std::uint64_t total, base::TimeNs time, std::uint64_t after) {
        min = std::min(min, total);
        if (!any || total > max) {
            *this = {min, total, time, nullptr, after, true};
        }
    }
    void add(const PyramidNode& next) {
        min = std::min(min, next.minTotal);
        if (!any || next.maxTotal > max) {
            *this = {min, next.maxTotal, next.maxTime, &next, 0, true};
        }
    }
};

MemoryState PyramidView::stateBefore(const EventColumns& events, std::uint64_t index) const {
    const std::uint64_t leaf = std::min<std::uint64_t>(index / kLeafEvents, levels_.empty() ? 0 : levels_[0].size());
    MemoryState state = leaf == 0 ? MemoryState{} : stateAfter(levels_[0][leaf - 1]);
    for (std::uint64_t i = leaf * kLeafEvents; i < index; ++i) {
        const MemoryChange step = events.steps[i];
        if (sideOf(step.space()) == side_) {
            state.apply(step);
        }
    }
    return state;
}

std::uint64_t PyramidView::totalBefore(const EventColumns& events, std::uint64_t index) const {
    const std::uint64_t leaf = std::min<std::uint64_t>(index / kLeafEvents, levels_.empty() ? 0 : levels_[0].size());
    std::uint64_t total = leaf == 0 ? 0 : stateAfter(levels_[0][leaf - 1]).total;
    for (std::uint64_t i = leaf * kLeafEvents; i < index; ++i) {
        total += changeOf(events.steps[i], side_);
    }
    return total;
}

void PyramidView::scan(const EventColumns& events, std::uint64_t first, std::uint64_t last, Fold& fold) const {
    std::uint64_t total = totalBefore(events, first);
    const MemoryChange* const steps = events.steps.from(first); // a leaf never crosses a block
    const base::TimeNs* const times = events.times.from(first);
    for (std::uint64_t i = 0; i < last - first; ++i) {
        total += changeOf(steps[i], side_);
        fold.add(total, times[i], first + i + 1);
    }
}

MemoryColumn PyramidView::extremes(const EventColumns& events, std::uint64_t first, std::uint64_t last,
                                   std::optional<base::TimeNs> entryTime) const {
    Fold fold;
    const std::uint64_t count = last - first;
    if (entryTime) {
        fold.add(totalBefore(events, first), *entryTime, first);
    }
    while (first < last) {
        // The largest full node that starts here and does not reach beyond the range.
        std::size_t level = 0;
        std::uint64_t span = 0;
        for (std::uint64_t next = kLeafEvents; level < levels_.size(); next *= kFanOut) {
            if (first % next != 0 || first + next > last || first / next >= levels_[level].size()) {
                break;
            }
            ++level;
            span = next;
        }
        if (level > 0) {
            fold.add(levels_[level - 1][first / span]);
            first += span;
        } else {
            const std::uint64_t end = std::min(last, (first / kLeafEvents + 1) * kLeafEvents);
            scan(events, first, end, fold);
            first = end;
        }
    }
    return {fold.min, fold.max, fold.maxTime,
            fold.node != nullptr ? fold.node->atMax : stateBefore(events, fold.events).bytes, count};
}

LeafSums PyramidView::sumsBefore(const EventColumns& events, std::uint64_t last) const {
    const std::uint64_t leaf = std::min<std::uint64_t>(last / kLeafEvents, sums_.size());
    LeafSums sums = leaf == 0 ? LeafSums{} : sums_[leaf - 1];
    extend(events, leaf * kLeafEvents, last, sums);
    return sums;
}

void PyramidView::extend(const EventColumns& events, std::uint64_t first, std::uint64_t last, LeafSums& sums) const {
    for (std::uint64_t i = first; i < last; ++i) {
        const MemoryChange step = events.steps[i];
        sums.add(events.times[i], sums.total + changeOf(step, side_), sideOf(step.space()) == side_, step.death());
    }
}

void PyramidBuilder::add(base::TimeNs time, MemoryChange step) {
    const bool ours = sideOf(step.space()) == side_;
    if (ours) {
        state_.apply(step);
    }
    addToNode(leaf_, state_, time, size_);
    current_.add(time, state_.total, ours, step.death());
    ++size_;
    if (size_ % kLeafEvents == 0) {
        closeLeaf();
    }
}

void PyramidBuilder::closeLeaf() {
    if (levels_.empty()) {
        levels_.emplace_back();
    }
    leaf_.atEnd = state_.bytes;
    levels_[0].push(leaf_);
    leaf_.count = 0;
    sums_.push(current_);
    for (std::size_t level = 0; levels_[level].size() % kFanOut == 0; ++level) {
        PyramidNode parent;
        for (std::size_t child = levels_[level].size() - kFanOut; child < levels_[level].size(); ++child) {
            addToNode(parent, levels_[level][child]);
        }
        if (level + 1 == levels_.size()) {
            levels_.emplace_back();
        }
        levels_[level + 1].push(parent);
    }
}

void PyramidBuilder::restoreLeaf(std::uint64_t leaf) {
    size_ = leaf * kLeafEvents;
    state_ = leaf == 0 ? MemoryState{} : stateAfter(levels_[0][leaf - 1]);
    current_ = leaf == 0 ? LeafSums{} : sums_[leaf - 1];
    sums_.truncate(leaf);
    leaf_.count = 0;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        levels_[level].truncate(std::min<std::size_t>(levels_[level].size(), size_ / spanOf(level)));
    }
}

PyramidView PyramidBuilder::view() {
    std::vector<PyramidView::Nodes> levels;
    levels.reserve(levels_.size());
    for (auto& level : levels_) {
        levels.push_back(level.view());
    }
    return PyramidView(side_, std::move(levels), sums_.view());
}

} // namespace vitrine::profiler

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

std::uint64_t changeOf(MemoryStep step, MemorySide side) {
    const std::uint64_t bytes = sideOf(step.space()) == side ? step.bytes() : 0;
    return step.death() ? std::uint64_t{0} - bytes : bytes;
}

MemoryState stateAfter(const PyramidNode& node) {
    return {std::accumulate(node.atEnd.begin(), node.atEnd.end(), std::uint64_t{0}), node.atEnd};
}

} // namespace

void addToNode(PyramidNode& node, const MemoryState& state, base::TimeNs time, std::uint64_t eventIndex) {
    if (node.count == 0) {
        node = {eventIndex, 1, time, time, state.total, state.total, time, state.bytes, {}};
        return;
    }
    ++node.count;
    node.timeEnd = time;
    node.minTotal = std::min(node.minTotal, state.total);
    if (state.total > node.maxTotal) {
        node.maxTotal = state.total;
        node.maxTime = time;
        node.atMax = state.bytes;
    }
}

void addToNode(PyramidNode& node, const PyramidNode& next) {
    if (node.count == 0) {
        node = next;
        return;
    }
    node.count += next.count;
    node.timeEnd = next.timeEnd;
    node.atEnd = next.atEnd;
    node.minTotal = std::min(node.minTotal, next.minTotal);
    if (next.maxTotal > node.maxTotal) {
        node.maxTotal = next.maxTotal;
        node.maxTime = next.maxTime;
        node.atMax = next.atMax;
    }
}

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
        const MemoryStep step = events.steps[i];
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
    const MemoryStep* const steps = events.steps.from(first); // a leaf never crosses a block
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
        const MemoryStep step = events.steps[i];
        sums.add(events.times[i], sums.total + changeOf(step, side_), sideOf(step.space()) == side_, step.death());
    }
}

void PyramidBuilder::add(base::TimeNs time, MemoryStep step) {
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

void PyramidWriter::add(base::TimeNs time, MemoryStep step) {
    if (step.space() == base::MemorySpace::Device) {
        state_.apply(step);
    }
    addToNode(leaf_, state_, time, size_);
    ++size_;
    if (leaf_.count == kLeafEvents) {
        leaf_.atEnd = state_.bytes;
        push(0, leaf_);
        leaf_.count = 0;
    }
}

void PyramidWriter::push(std::size_t level, const PyramidNode& node) {
    if (level == levels_.size()) {
        levels_.emplace_back();
    }
    levels_[level].ready.push_back(node);
    addToNode(levels_[level].parent, node);
    if (++levels_[level].children == kFanOut) {
        const PyramidNode parent = levels_[level].parent;
        levels_[level].parent.count = 0;
        levels_[level].children = 0;
        push(level + 1, parent);
    }
}

void PyramidWriter::finish() {
    if (leaf_.count > 0) {
        leaf_.atEnd = state_.bytes;
        push(0, leaf_);
        leaf_.count = 0;
    }
    // Every level that has a level above it, or more than one child waiting, hands its rest up.
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        const bool hasAbove = level + 1 < levels_.size();
        if (levels_[level].children > (hasAbove ? 0U : 1U)) {
            const PyramidNode parent = levels_[level].parent;
            levels_[level].parent.count = 0;
            levels_[level].children = 0;
            push(level + 1, parent);
        }
    }
}

std::vector<std::vector<PyramidNode>> PyramidWriter::take() {
    std::vector<std::vector<PyramidNode>> nodes;
    for (Level& level : levels_) {
        nodes.push_back(std::move(level.ready));
        level.ready.clear();
    }
    return nodes;
}

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/pyramid.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace vitrine::profiler {

namespace {

/// Events below the node of one level.
constexpr std::uint64_t spanOf(std::size_t level) {
    std::uint64_t span = kLeafEvents;
    for (std::size_t i = 0; i < level; ++i) {
        span *= kFanOut;
    }
    return span;
}

std::uint64_t changeOf(MemoryChange step, MemorySide side) {
    const std::uint64_t bytes = sideOf(step.space()) == side ? step.bytes() : 0;
    return step.death() ? std::uint64_t{0} - bytes : bytes;
}

MemoryState stateAfter(const PyramidNode& node) {
    return {std::accumulate(node.atEnd.begin(), node.atEnd.end(), std::uint64_t{0}), node.atEnd};
}

} // namespace

/// The extremes so far; when the largest total was reached and its split are looked up at the end.
struct PyramidView::Fold {
    std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max = 0;
    const PyramidNode* node = nullptr; ///< of the largest, else the state after `events` events
    std::uint64_t events = 0;
    bool any = false;

    void add(std::uint64_t total, std::uint64_t after) {
        min = std::min(min, total);
        if (!any || total > max) {
            *this = {min, total, nullptr, after, true};
        }
    }
    void add(const PyramidNode& next) {
        min = std::min(min, next.minTotal);
        if (!any || next.maxTotal > max) {
            *this = {min, next.maxTotal, &next, 0, true};
        }
    }
};

MemoryState PyramidView::stateBefore(const MemoryEvents& events, std::uint64_t index) const {
    const std::uint64_t leaf = std::min<std::uint64_t>(index / kLeafEvents, levels_.empty() ? 0 : levels_[0].size());
    MemoryState state = leaf == 0 ? MemoryState{} : stateAfter(levels_[0][leaf - 1]);
    events.eachChange(leaf * kLeafEvents, index, [&](MemoryChange change) {
        if (sideOf(change.space()) == side_) {
            state.apply(change);
        }
    });
    return state;
}

std::uint64_t PyramidView::totalBefore(const MemoryEvents& events, std::uint64_t index) const {
    const std::uint64_t leaf = std::min<std::uint64_t>(index / kLeafEvents, levels_.empty() ? 0 : levels_[0].size());
    std::uint64_t total = leaf == 0 ? 0 : stateAfter(levels_[0][leaf - 1]).total;
    events.eachChange(leaf * kLeafEvents, index, [&](MemoryChange change) { total += changeOf(change, side_); });
    return total;
}

void PyramidView::scan(const MemoryEvents& events, std::uint64_t first, std::uint64_t last, Fold& fold) const {
    std::uint64_t total = totalBefore(events, first);
    events.eachChange(first, last, [&](MemoryChange change) {
        total += changeOf(change, side_);
        fold.add(total, ++first);
    });
}

MemoryColumn PyramidView::extremes(const MemoryEvents& events, std::uint64_t first, std::uint64_t last,
                                   std::optional<base::TimeNs> entryTime) const {
    Fold fold;
    const std::uint64_t entry = first;
    if (entryTime) {
        fold.add(totalBefore(events, first), first);
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
    if (fold.node != nullptr) {
        return {fold.min, fold.max, fold.node->maxTime, fold.node->atMax, last - entry};
    }
    const bool atEntry = entryTime && fold.events == entry;
    return {fold.min, fold.max, atEntry ? *entryTime : events.time(fold.events - 1),
            stateBefore(events, fold.events).bytes, last - entry};
}

LeafSums PyramidView::sumsBefore(const MemoryEvents& events, std::uint64_t last) const {
    const std::uint64_t leaf = std::min<std::uint64_t>(last / kLeafEvents, sums_.size());
    LeafSums sums = leaf == 0 ? LeafSums{} : sums_[leaf - 1];
    extend(events, leaf * kLeafEvents, last, sums);
    return sums;
}

void PyramidView::extend(const MemoryEvents& events, std::uint64_t first, std::uint64_t last, LeafSums& sums) const {
    events.each(first, last, [&](const MemoryEvent& event) {
        const MemoryChange change = event.change;
        sums.add(event.time, sums.total + changeOf(change, side_), sideOf(change.space()) == side_, change.death());
    });
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
    if (keepsSums()) {
        sums_.push(current_);
    }
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
    if (keepsSums()) {
        current_ = leaf == 0 ? LeafSums{} : sums_[leaf - 1];
        sums_.truncate(leaf);
    }
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

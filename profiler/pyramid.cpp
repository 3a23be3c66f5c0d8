// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/pyramid.h"

#include <algorithm>
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

std::uint64_t EventColumns::before(base::TimeNs time) const {
    return partitionPoint(size(), [&](std::uint64_t index) { return times[index] < time; });
}

std::uint64_t EventColumns::upTo(base::TimeNs time) const {
    return partitionPoint(size(), [&](std::uint64_t index) { return times[index] <= time; });
}

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

void PyramidView::scan(const EventColumns& events, std::uint64_t first, std::uint64_t last, PyramidNode& node) const {
    MemoryState state = stateBefore(events, first);
    for (std::uint64_t i = first; i < last; ++i) {
        const MemoryStep step = events.steps[i];
        if (sideOf(step.space()) == side_) {
            state.apply(step);
        }
        addToNode(node, state, events.times[i], i);
    }
}

MemoryColumn PyramidView::extremes(const EventColumns& events, std::uint64_t first, std::uint64_t last) const {
    PyramidNode node;
    while (first < last) {
        std::size_t level = levels_.size();
        // The largest full node that starts here and does not reach beyond the range.
        while (level > 0) {
            const std::uint64_t span = spanOf(level - 1);
            if (first % span == 0 && first + span <= last && first / span < levels_[level - 1].size()) {
                break;
            }
            --level;
        }
        if (level > 0) {
            const std::uint64_t span = spanOf(level - 1);
            addToNode(node, levels_[level - 1][first / span]);
            first += span;
        } else {
            const std::uint64_t end = std::min(last, (first / kLeafEvents + 1) * kLeafEvents);
            scan(events, first, end, node);
            first = end;
        }
    }
    return {node.minTotal, node.maxTotal, node.maxTime, node.atMax, node.count};
}

void PyramidBuilder::add(base::TimeNs time, MemoryStep step) {
    if (sideOf(step.space()) == side_) {
        state_.apply(step);
    }
    addToNode(leaf_, state_, time, size_);
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
    return PyramidView(side_, std::move(levels));
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

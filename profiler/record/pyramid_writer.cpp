// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/pyramid_writer.h"

#include <algorithm>

namespace vitrine::profiler {

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

void PyramidWriter::add(base::TimeNs time, MemoryChange step) {
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

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/stored_pyramid.h"

#include <algorithm>
#include <numeric>

#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/pyramid.h"

namespace vitrine::profiler {

void StoredLevels::add(std::size_t level, const std::vector<PyramidNode>& nodes) {
    if (level >= levels_.size()) {
        levels_.resize(level + 1);
    }
    Level& known = levels_[level];
    if (known.forgotten || known.nodes.size() + nodes.size() > kMaxNodes) {
        known = {.forgotten = true};
        return;
    }
    known.nodes.insert(known.nodes.end(), nodes.begin(), nodes.end());
    known.events += storedEvents(nodes);
}

const StoredLevels::Level* StoredLevels::bestLevel() const {
    const auto best = std::ranges::max_element(levels_, {}, &Level::events); // the first of equal ones
    return best == levels_.end() ? nullptr : &*best;
}

std::uint64_t StoredLevels::events() const {
    const Level* best = bestLevel();
    return best == nullptr ? 0 : best->events;
}

StoredPyramid StoredLevels::best() const {
    const Level* best = bestLevel();
    StoredPyramid nodes = best == nullptr ? StoredPyramid() : best->nodes;
    std::ranges::sort(nodes, {}, &PyramidNode::firstEvent);
    return nodes;
}

std::uint64_t storedEvents(const StoredPyramid& nodes) {
    return std::accumulate(nodes.begin(), nodes.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const PyramidNode& node) { return sum + node.count; });
}

std::vector<MemoryColumn> storedColumns(const StoredPyramid& nodes, base::TimeNs begin, base::TimeNs end, int columns) {
    std::vector<MemoryColumn> out;
    out.reserve(static_cast<std::size_t>(columns));
    end = std::max(begin, end);
    for (int i = 0; i < columns; ++i) {
        const auto border = [&](int index) {
            return begin + static_cast<base::TimeNs>(static_cast<__int128>(end - begin) * index / columns);
        };
        const base::TimeNs low = border(i);
        const base::TimeNs high = border(i + 1);
        // Nodes follow each other in time, so those that reach into the window are neighbours.
        auto node = std::ranges::lower_bound(nodes, low, {}, &PyramidNode::timeEnd);
        PyramidNode sum;
        for (; node != nodes.end() && node->timeBegin < high; ++node) {
            addToNode(sum, *node);
        }
        if (sum.count > 0) {
            out.push_back({sum.minTotal, sum.maxTotal, std::clamp(sum.maxTime, low, high), sum.atMax, sum.count});
        } else {
            const base::CategoryBytes held = storedAt(nodes, low);
            out.push_back({totalBytes(held), totalBytes(held), low, held, 0});
        }
    }
    return out;
}

base::CategoryBytes storedAt(const StoredPyramid& nodes, base::TimeNs time) {
    const auto after = std::ranges::upper_bound(nodes, time, {}, &PyramidNode::timeBegin);
    if (after == nodes.begin()) {
        return {};
    }
    const PyramidNode& node = *(after - 1);
    return time < node.timeEnd && time >= node.maxTime ? node.atMax : node.atEnd;
}

std::vector<CurvePiece> storedCurve(const StoredPyramid& nodes) {
    std::vector<CurvePiece> curve;
    curve.reserve(nodes.size());
    for (const PyramidNode& node : nodes) {
        curve.push_back({node.minTotal, node.maxTotal, node.maxTime});
    }
    return curve;
}

} // namespace vitrine::profiler

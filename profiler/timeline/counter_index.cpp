// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/counter_index.h"

#include <algorithm>

namespace vitrine::profiler {

using base::TimeNs;

CounterIndex::CounterIndex(std::span<const CounterSample> samples) : samples_(samples) {
    std::vector<Range> leaves((samples.size() + kBlock - 1) / kBlock);
    integrals_.reserve(leaves.size());
    double integral = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (i > 0) {
            integral += samples[i - 1].value * static_cast<double>(samples[i].time - samples[i - 1].time);
        }
        Range& leaf = leaves[i / kBlock];
        if (i % kBlock == 0) {
            integrals_.push_back(integral);
            leaf = {samples[i].value, samples[i].value};
        }
        leaf.least = std::min(leaf.least, samples[i].value);
        leaf.largest = std::max(leaf.largest, samples[i].value);
    }
    levels_.push_back(std::move(leaves));
    while (levels_.back().size() > kBlock) {
        const std::vector<Range>& below = levels_.back();
        std::vector<Range> level((below.size() + kBlock - 1) / kBlock);
        for (std::size_t i = 0; i < below.size(); ++i) {
            Range& node = level[i / kBlock];
            node = i % kBlock == 0
                       ? below[i]
                       : Range{std::min(node.least, below[i].least), std::max(node.largest, below[i].largest)};
        }
        levels_.push_back(std::move(level));
    }
}

double CounterIndex::integral(TimeNs time, std::size_t before) const {
    const std::size_t last = before - 1; // of the samples up to `time`
    const std::size_t first = last / kBlock * kBlock;
    double sum = integrals_[last / kBlock];
    for (std::size_t i = first; i < last; ++i) {
        sum += samples_[i].value * static_cast<double>(samples_[i + 1].time - samples_[i].time);
    }
    return sum + samples_[last].value * static_cast<double>(time - samples_[last].time);
}

void CounterIndex::widen(CounterColumn& column, std::size_t first, std::size_t last) const {
    const auto take = [&](double least, double largest) {
        column.least = column.known ? std::min(column.least, least) : least;
        column.largest = column.known ? std::max(column.largest, largest) : largest;
        column.known = true;
    };
    std::size_t width = 1; // samples of a node
    std::size_t level = 0; // whose nodes the middle consists of, above the samples themselves
    const auto takeNodes = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; i += width) {
            if (level == 0) {
                take(samples_[i].value, samples_[i].value);
            } else {
                const Range& node = levels_[level - 1][i / width];
                take(node.least, node.largest);
            }
        }
    };
    // Up to the borders of ever larger nodes from both sides, then the middle.
    while (level < levels_.size()) {
        const std::size_t larger = width * kBlock;
        const std::size_t up = (first + larger - 1) / larger * larger;
        const std::size_t down = last / larger * larger;
        if (up >= down) {
            break;
        }
        takeNodes(first, up);
        takeNodes(down, last);
        first = up;
        last = down;
        width = larger;
        ++level;
    }
    takeNodes(first, last);
}

CounterColumn CounterIndex::column(TimeNs begin, TimeNs end) const {
    const auto indexOf = [&](TimeNs time) {
        return static_cast<std::size_t>(std::ranges::lower_bound(samples_, time, {}, &CounterSample::time) -
                                        samples_.begin());
    };
    const std::size_t first = indexOf(begin);
    const std::size_t last = indexOf(end);
    CounterColumn column;
    column.samples = last - first;
    // What held before the window still holds, unless a sample stands exactly at its begin.
    const bool carries = first > 0 && (first == samples_.size() || samples_[first].time != begin);
    widen(column, carries ? first - 1 : first, last);
    if (!column.known) {
        return column;
    }
    const TimeNs from = carries ? begin : samples_[first].time;
    if (from < end) {
        const std::size_t before = carries ? first : first + 1;
        column.mean = (integral(end, last) - integral(from, before)) / static_cast<double>(end - from);
        column.mean = std::clamp(column.mean, column.least, column.largest);
    } else {
        column.mean = column.largest;
    }
    return column;
}

} // namespace vitrine::profiler

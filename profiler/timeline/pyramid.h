// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory pyramid: for every kLeafEvents events one leaf, for every kFanOut nodes one node above. A node knows the
// smallest and largest total after any of its events, the first instant of the largest and the category vector there.
// So the exact extremes of any range of events come from a few nodes and at most two leaves looked at event by event.
// Nodes are made when they are full; the events after the last full leaf are always looked at one by one.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "profiler/record/memory_step.h"
#include "profiler/record/pyramid_writer.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"
#include "profiler/timeline/memory_events.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

/// Sums over all events up to the end of a leaf.
struct LeafSums {
    std::uint64_t births = 0, deaths = 0;
    double area = 0;         ///< byte-nanoseconds up to `time`
    base::TimeNs time = 0;   ///< of the leaf's last event
    std::uint64_t total = 0; ///< after it

    /// An event; `ours`: of this side of memory.
    void add(base::TimeNs at, std::uint64_t totalAfter, bool ours, bool death) {
        area += static_cast<double>(total) * static_cast<double>(at - time);
        time = at;
        total = totalAfter;
        births += ours && !death ? 1 : 0;
        deaths += ours && death ? 1 : 0;
    }
};

/// An immutable pyramid over events.
class PyramidView {
public:
    using Nodes = BlockView<PyramidNode, 256>;

    PyramidView() = default;
    PyramidView(MemorySide side, std::vector<Nodes> levels, BlockView<LeafSums, 256> sums)
        : side_(side), levels_(std::move(levels)), sums_(std::move(sums)) {}

    /// The state after events [0, index).
    MemoryState stateBefore(const MemoryEvents& events, std::uint64_t index) const;
    /// The extremes over the states after each of the events [first, last); first < last. With `entryTime`, also over
    /// the state before them, which began at that time.
    MemoryColumn extremes(const MemoryEvents& events, std::uint64_t first, std::uint64_t last,
                          std::optional<base::TimeNs> entryTime = std::nullopt) const;

    /// Sums over events [0, last), and `sums` carried on over [first, last). Of device memory only.
    LeafSums sumsBefore(const MemoryEvents& events, std::uint64_t last) const;
    void extend(const MemoryEvents& events, std::uint64_t first, std::uint64_t last, LeafSums& sums) const;

private:
    struct Fold;
    std::uint64_t totalBefore(const MemoryEvents& events, std::uint64_t index) const;
    void scan(const MemoryEvents& events, std::uint64_t first, std::uint64_t last, Fold& fold) const;

    MemorySide side_ = MemorySide::Device;
    std::vector<Nodes> levels_;
    BlockView<LeafSums, 256> sums_; ///< of each full leaf
};

/// Builds a pyramid event by event; can step back.
class PyramidBuilder {
public:
    explicit PyramidBuilder(MemorySide side) : side_(side) {}

    void add(base::TimeNs time, MemoryChange step);
    std::uint64_t size() const { return size_; }
    const MemoryState& state() const { return state_; }

    /// Forgets the events from number `size` on. `stepAt(i)` and `timeAt(i)` give event i < size.
    template <class TimeAt, class StepAt> void truncate(std::uint64_t size, TimeAt timeAt, StepAt stepAt) {
        if (size >= size_) {
            return;
        }
        const std::uint64_t leaf = size / kLeafEvents;
        restoreLeaf(leaf);
        for (std::uint64_t index = leaf * kLeafEvents; index < size; ++index) {
            add(timeAt(index), stepAt(index));
        }
    }

    PyramidView view();

private:
    void restoreLeaf(std::uint64_t leaf);
    void closeLeaf();
    bool keepsSums() const { return side_ == MemorySide::Device; } ///< nobody asks for those of the host

    MemorySide side_;
    std::uint64_t size_ = 0;
    MemoryState state_;
    PyramidNode leaf_;
    LeafSums current_;
    std::vector<SegmentedVector<PyramidNode, 256>> levels_;
    SegmentedVector<LeafSums, 256> sums_;
};

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Items that stand in runs of neighbours, and which run an item is in. The run of every kEvery-th item is kept, so a
// search looks at few runs. RunIndex is immutable and may be read by any thread; RunIndexBuilder is not thread-safe.

#include <cstddef>
#include <cstdint>

#include "profiler/record/segmented_vector.h"
#include "profiler/timeline/ordered_search.h"

namespace vitrine::profiler {

/// `Column`: BlockView for readers, SegmentedVector for the builder.
template <template <class, std::size_t> class Column> class RunIndexOf {
public:
    std::size_t size() const { return size_; } ///< items

    /// The run of an item below size(). `firstOf(run)`: the first item of each of `runs` runs; a run without items
    /// has that of the run after it.
    template <class FirstOf> std::size_t runOf(std::size_t item, std::size_t runs, FirstOf firstOf) const {
        const std::size_t hint = item / kEvery;
        const std::size_t low = runAt_[hint];
        const std::size_t high = hint + 1 < runAt_.size() ? runAt_[hint + 1] : runs - 1;
        return low + static_cast<std::size_t>(lastNotAbove(
                         high - low + 1, item, [&](std::size_t i) -> std::size_t { return firstOf(low + i); }));
    }

protected:
    static constexpr std::size_t kEvery = 2048;

    std::size_t size_ = 0;
    Column<std::uint32_t, 256> runAt_;
};

class RunIndex : public RunIndexOf<BlockView> {
    friend class RunIndexBuilder;
};

class RunIndexBuilder : public RunIndexOf<SegmentedVector> {
public:
    /// The next item is of this run.
    void push(std::size_t run) {
        if (size_ % kEvery == 0) {
            runAt_.push(static_cast<std::uint32_t>(run));
        }
        ++size_;
    }
    void popBack() {
        --size_;
        runAt_.truncate((size_ + kEvery - 1) / kEvery);
    }
    RunIndex view() {
        RunIndex view;
        view.size_ = size_;
        view.runAt_ = runAt_.view();
        return view;
    }
};

} // namespace vitrine::profiler

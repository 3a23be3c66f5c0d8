// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A counter's samples at any zoom: least, largest and mean value of a window of time, without walking all samples of
// it. A value holds from its sample until the next one. Immutable once made.

#include <span>
#include <vector>

#include "base/clock.h"

namespace vitrine::profiler {

struct CounterSample {
    base::TimeNs time = 0;
    double value = 0;
};

/// Values that hold somewhere in a window. Without any (the window ends before the first sample): samples 0, known
/// false.
struct CounterColumn {
    double least = 0, largest = 0;
    double mean = 0;           ///< over the part of the window in which a value holds
    std::uint64_t samples = 0; ///< inside the window
    bool known = false;
};

class CounterIndex {
public:
    /// `samples` by time; they must outlive this.
    explicit CounterIndex(std::span<const CounterSample> samples);

    /// Of [begin, end), begin < end.
    CounterColumn column(base::TimeNs begin, base::TimeNs end) const;

private:
    static constexpr std::size_t kBlock = 64;
    struct Range {
        double least = 0, largest = 0;
    };

    /// Integral of the value from the first sample to `time`, value x ns.
    double integral(base::TimeNs time, std::size_t before) const;
    void widen(CounterColumn& column, std::size_t first, std::size_t last) const;

    std::span<const CounterSample> samples_;
    std::vector<std::vector<Range>> levels_; ///< of 64, 64 x 64, ... samples
    std::vector<double> integrals_;          ///< up to the first sample of each block
};

} // namespace vitrine::profiler

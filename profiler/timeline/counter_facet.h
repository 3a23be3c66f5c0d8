// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The counters of a run, those of the engine and of the hardware alike: "reserved_bytes", "budget_bytes", "kv_tokens",
// "gpu.power", ... Immutable; any thread may ask.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/record/segmented_vector.h"
#include "profiler/timeline/counter_index.h"

namespace vitrine::profiler {

class CounterFacet {
public:
    using Samples = std::map<std::string, SharedView<CounterSample>, std::less<>>;

    explicit CounterFacet(Samples samples);
    ~CounterFacet();
    CounterFacet(const CounterFacet&) = delete; // holds indices over its samples
    CounterFacet& operator=(const CounterFacet&) = delete;

    std::vector<std::string> names() const; ///< sorted
    /// A counter's samples by time; empty for a counter that the run does not have.
    std::vector<std::pair<base::TimeNs, double>> samples(std::string_view name) const;
    /// What a counter did in `columns` neighbouring pieces of [begin, end); not known where it has no samples.
    std::vector<CounterColumn> columns(std::string_view name, base::TimeNs begin, base::TimeNs end, int columns) const;

private:
    struct Lazy;

    Samples samples_;
    std::unique_ptr<Lazy> lazy_;
};

} // namespace vitrine::profiler

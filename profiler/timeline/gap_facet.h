// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where records of a run were lost, by begin. Empty for a run that was kept as a whole. Immutable; any thread may ask.

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "profiler/record/event_times.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

class GapFacet {
public:
    explicit GapFacet(SharedView<base::GapEvent> all) : all_(std::move(all)) {}

    std::span<const base::GapEvent> all() const { return {all_.begin(), all_.size()}; }
    /// The first instant from which totals of memory may be wrong; nothing: all are right.
    std::optional<base::TimeNs> memoryFrom() const {
        const auto* const lost =
            std::ranges::find_if(all_, [](const base::GapEvent& gap) { return gap.memoryRecords > 0; });
        return lost == all_.end() ? std::nullopt : std::optional(lost->begin);
    }

private:
    SharedView<base::GapEvent> all_;
};

class GapFacetBuilder {
public:
    void add(const EventBatch& batch) {
        for (const auto& event : batch.of<base::GapEvent>()) {
            all_.insertOrdered(event, [](const base::GapEvent& e) { return e.begin; });
            latest_ = std::max(latest_, EventEnd()(event));
        }
    }
    base::TimeNs latest() const { return latest_; } ///< end of the last event, -1: none
    GapFacet facet() { return GapFacet(all_.view()); }

private:
    SharedVector<base::GapEvent> all_;
    base::TimeNs latest_ = -1;
};

} // namespace vitrine::profiler

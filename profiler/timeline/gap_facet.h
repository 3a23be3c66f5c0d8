// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where records of a run were lost, by begin. Empty for a run that was kept as a whole. Immutable; any thread may ask.

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "profiler/timeline/event_store.h"

namespace vitrine::profiler {

class GapFacet {
public:
    explicit GapFacet(StoredEvents events) : events_(std::move(events)) {}

    std::span<const base::GapEvent> all() const { return events_.of<base::GapEvent>(); }
    /// The first instant from which totals of memory may be wrong; nothing: all are right.
    std::optional<base::TimeNs> memoryFrom() const {
        const std::span<const base::GapEvent> gaps = all();
        const auto lost = std::ranges::find_if(gaps, [](const base::GapEvent& gap) { return gap.memoryRecords > 0; });
        return lost == gaps.end() ? std::nullopt : std::optional(lost->begin);
    }

private:
    StoredEvents events_;
};

} // namespace vitrine::profiler

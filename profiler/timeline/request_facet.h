// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A batch that served requests: its steps, its slots and the lives of its requests. Empty for other runs. Immutable;
// any thread may ask.

#include <span>
#include <utility>

#include "profiler/timeline/event_store.h"

namespace vitrine::profiler {

class RequestFacet {
public:
    explicit RequestFacet(StoredEvents events) : events_(std::move(events)) {}

    /// By begin.
    std::span<const base::BatchStepEvent> steps() const { return events_.of<base::BatchStepEvent>(); }
    /// What slots did, by begin.
    std::span<const base::SlotSpanEvent> slotSpans() const { return events_.of<base::SlotSpanEvent>(); }
    /// By time. Reasons by the timeline's text(reason.value). Times are below 0 where a part of a long run has what its
    /// requests did before it.
    std::span<const base::RequestEvent> events() const { return events_.of<base::RequestEvent>(); }

private:
    StoredEvents events_;
};

} // namespace vitrine::profiler

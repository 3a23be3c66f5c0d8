// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A batch that served requests: its steps, its slots and the lives of its requests. Empty for other runs. Immutable; any
// thread may ask.

#include <algorithm>
#include <span>
#include <utility>

#include "profiler/record/event_times.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

class RequestFacet {
public:
    RequestFacet(SharedView<base::BatchStepEvent> steps, SharedView<base::SlotSpanEvent> slotSpans,
                 SharedView<base::RequestEvent> events)
        : steps_(std::move(steps)), slotSpans_(std::move(slotSpans)), events_(std::move(events)) {}

    /// By begin.
    std::span<const base::BatchStepEvent> steps() const { return {steps_.begin(), steps_.size()}; }
    /// What slots did, by begin.
    std::span<const base::SlotSpanEvent> slotSpans() const { return {slotSpans_.begin(), slotSpans_.size()}; }
    /// By time. Reasons by the timeline's text(reason.value). Times are below 0 where a part of a long run tells what its
    /// requests did before it.
    std::span<const base::RequestEvent> events() const { return {events_.begin(), events_.size()}; }

private:
    SharedView<base::BatchStepEvent> steps_;
    SharedView<base::SlotSpanEvent> slotSpans_;
    SharedView<base::RequestEvent> events_;
};

class RequestFacetBuilder {
public:
    void add(const EventBatch& batch) {
        for (const auto& event : batch.of<base::BatchStepEvent>()) {
            steps_.insertOrdered(event, [](const base::BatchStepEvent& e) { return e.begin; });
            latest_ = std::max(latest_, EventEnd()(event));
        }
        for (const auto& event : batch.of<base::SlotSpanEvent>()) {
            slotSpans_.insertOrdered(event, [](const base::SlotSpanEvent& e) { return e.begin; });
            latest_ = std::max(latest_, EventEnd()(event));
        }
        for (const auto& event : batch.of<base::RequestEvent>()) {
            events_.insertOrdered(event, [](const base::RequestEvent& e) { return e.time; });
            latest_ = std::max(latest_, EventEnd()(event));
        }
    }
    base::TimeNs latest() const { return latest_; } ///< end of the last event, -1: none
    RequestFacet facet() { return RequestFacet(steps_.view(), slotSpans_.view(), events_.view()); }

private:
    SharedVector<base::BatchStepEvent> steps_;
    SharedVector<base::SlotSpanEvent> slotSpans_;
    SharedVector<base::RequestEvent> events_;
    base::TimeNs latest_ = -1;
};

} // namespace vitrine::profiler

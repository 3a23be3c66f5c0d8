// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Work on lanes outside the scope tree: kernels and copies of a GPU, stages of loading. Those of replayed steps are expanded.
// Immutable; any thread may ask.

#include <algorithm>
#include <span>
#include <utility>

#include "profiler/record/event_times.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

class KernelFacet {
public:
    explicit KernelFacet(SharedView<base::SpanEvent> spans) : spans_(std::move(spans)) {}

    /// By begin. Names by the timeline's text(lane.value), text(name.value).
    std::span<const base::SpanEvent> spans() const { return {spans_.begin(), spans_.size()}; }

private:
    SharedView<base::SpanEvent> spans_;
};

class KernelFacetBuilder {
public:
    void add(const EventBatch& batch) {
        for (const auto& event : batch.spans) {
            spans_.insertOrdered(event, [](const base::SpanEvent& e) { return e.begin; });
            latest_ = std::max(latest_, EventEnd()(event));
        }
    }
    /// A span of an expanded step.
    void add(const base::SpanEvent& event) {
        spans_.insertOrdered(event, [](const base::SpanEvent& e) { return e.begin; });
        latest_ = std::max(latest_, event.end);
    }
    base::TimeNs latest() const { return latest_; } ///< end of the last event, -1: none
    KernelFacet facet() { return KernelFacet(spans_.view()); }

private:
    SharedVector<base::SpanEvent> spans_;
    base::TimeNs latest_ = -1;
};

} // namespace vitrine::profiler

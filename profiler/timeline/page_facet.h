// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The pages of the KV cache: changes of their states, by time. Immutable; any thread may ask.

#include <algorithm>
#include <span>
#include <utility>

#include "profiler/record/event_times.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

class PageFacet {
public:
    explicit PageFacet(SharedView<base::KvPageEvent> all) : all_(std::move(all)) {}

    std::span<const base::KvPageEvent> all() const { return {all_.begin(), all_.size()}; }

private:
    SharedView<base::KvPageEvent> all_;
};

class PageFacetBuilder {
public:
    void add(const EventBatch& batch) {
        for (const auto& event : batch.of<base::KvPageEvent>()) {
            all_.insertOrdered(event, [](const base::KvPageEvent& e) { return e.time; });
            latest_ = std::max(latest_, EventEnd()(event));
        }
    }
    base::TimeNs latest() const { return latest_; } ///< end of the last event, -1: none
    PageFacet facet() { return PageFacet(all_.view()); }

private:
    SharedVector<base::KvPageEvent> all_;
    base::TimeNs latest_ = -1;
};

} // namespace vitrine::profiler

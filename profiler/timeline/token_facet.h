// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tokens that a run sampled, by time. Immutable; any thread may ask.

#include <algorithm>
#include <span>
#include <utility>

#include "profiler/record/event_times.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

class TokenFacet {
public:
    explicit TokenFacet(SharedView<base::TokenEvent> all) : all_(std::move(all)) {}

    std::span<const base::TokenEvent> all() const { return {all_.begin(), all_.size()}; }

private:
    SharedView<base::TokenEvent> all_;
};

class TokenFacetBuilder {
public:
    void add(const EventBatch& batch) {
        for (const auto& event : batch.tokens) {
            all_.insertOrdered(event, [](const base::TokenEvent& e) { return e.time; });
            latest_ = std::max(latest_, EventEnd()(event));
        }
    }
    base::TimeNs latest() const { return latest_; } ///< end of the last event, -1: none
    TokenFacet facet() { return TokenFacet(all_.view()); }

private:
    SharedVector<base::TokenEvent> all_;
    base::TimeNs latest_ = -1;
};

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The pages of the KV cache: changes of their states, by time. Immutable; any thread may ask.

#include <span>
#include <utility>

#include "profiler/timeline/event_store.h"

namespace vitrine::profiler {

class PageFacet {
public:
    explicit PageFacet(StoredEvents events) : events_(std::move(events)) {}

    std::span<const base::KvPageEvent> all() const { return events_.of<base::KvPageEvent>(); }

private:
    StoredEvents events_;
};

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Events of any kind of EventStreams, so that a new kind has a reader without a facet of its own.

#include <span>

#include "profiler/timeline/event_store.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::profiler {

/// A run's events of one kind, by begin. They live as long as the timeline.
template <class Event> std::span<const Event> events(const RunTimeline& timeline) {
    return timeline.stored().of<Event>();
}

} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Events in the order of their begin. EventStore keeps every kind of EventStreams by its type alone, so a new kind is
// found by events<Event>() of run_events.h without a line here. Snapshots are immutable; any thread may read them.

#include <algorithm>
#include <span>
#include <tuple>

#include "profiler/record/event_times.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

/// Events of one kind, as they arrive.
template <class Event> class OrderedEvents {
public:
    void add(std::span<const Event> events) {
        for (const Event& event : events) {
            events_.insertOrdered(event, EventBegin());
            latest_ = std::max(latest_, EventEnd()(event));
        }
    }
    base::TimeNs latest() const { return latest_; } ///< end of the last event, -1: none
    SharedView<Event> view() { return events_.view(); }

private:
    SharedVector<Event> events_;
    base::TimeNs latest_ = -1;
};

/// What an EventStore held at some moment.
class StoredEvents {
public:
    StoredEvents() = default;
    explicit StoredEvents(EventStreams::Each<SharedView> views) : views_(std::move(views)) {}

    /// By begin.
    template <class Event> std::span<const Event> of() const {
        const auto& view = std::get<SharedView<Event>>(views_);
        return {view.begin(), view.size()};
    }

private:
    EventStreams::Each<SharedView> views_;
};

class EventStore {
public:
    void add(const EventBatch& batch) {
        EventStreams::each([&]<class Stream> {
            using Event = typename Stream::Event;
            std::get<OrderedEvents<Event>>(events_).add(batch.of<Event>());
        });
    }
    /// End of the last event, -1: none.
    base::TimeNs latest() const {
        return std::apply([](const auto&... events) { return std::max({events.latest()...}); }, events_);
    }
    StoredEvents view() {
        return StoredEvents(std::apply([](auto&... events) { return std::tuple(events.view()...); }, events_));
    }

private:
    EventStreams::Each<OrderedEvents> events_;
};

} // namespace vitrine::profiler

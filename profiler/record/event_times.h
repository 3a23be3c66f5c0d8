// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// When an event of a run happened, whatever its kind.

#include "base/trace.h"

namespace vitrine::profiler {

/// The first instant of an event, in nanoseconds since the run's start. A template has none: 0.
struct EventBegin {
    template <class Event> base::TimeNs operator()(const Event& event) const {
        if constexpr (requires { event.begin; }) {
            return event.begin;
        } else if constexpr (requires { event.time; }) {
            return event.time;
        } else {
            return 0;
        }
    }
};

/// The last instant of an event. A template has none: 0.
struct EventEnd {
    template <class Event> base::TimeNs operator()(const Event& event) const {
        if constexpr (requires { event.end; }) {
            return event.end;
        } else {
            return EventBegin()(event);
        }
    }
};

} // namespace vitrine::profiler

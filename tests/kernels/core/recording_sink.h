// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A sink that keeps every event, for tests.

#include <string>
#include <vector>

#include "base/trace.h"

namespace vitrine::kernels {

class RecordingSink final : public base::TraceSink {
public:
    base::StringId intern(std::string_view text) override {
        for (std::size_t i = 0; i < texts.size(); ++i) {
            if (texts[i] == text) {
                return {static_cast<std::uint32_t>(i)};
            }
        }
        texts.emplace_back(text);
        return {static_cast<std::uint32_t>(texts.size() - 1)};
    }
    void record(const base::TraceEvent& event) override { events.push_back(event); }

    template <class Event> std::vector<Event> all() const {
        std::vector<Event> out;
        for (const base::TraceEvent& event : events) {
            if (const auto* value = std::get_if<Event>(&event)) {
                out.push_back(*value);
            }
        }
        return out;
    }

    std::vector<std::string> texts{""};
    std::vector<base::TraceEvent> events;
};

/// A clock that a test moves.
class ManualClock final : public base::Clock {
public:
    base::TimeNs now() const override { return time; }
    base::TimeBase timeBase() const override { return base::TimeBase::Monotonic; }
    base::TimeNs time = 0;
};

} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Time. All times of a run are nanoseconds since the run's start on one clock; the run says which: monotonic or
// virtual.

#include <cstdint>

namespace vitrine::base {

using TimeNs = std::int64_t;

/// The monotonic clock of this machine.
TimeNs monotonicNs();

/// Milliseconds since the Unix epoch, for "when was this run".
std::int64_t wallClockMs();

/// What the times of a run mean. Views never mix the two.
enum class TimeBase : std::uint8_t { Monotonic, Virtual };

/// Source of times for a run. Called from any thread.
class Clock {
public:
    virtual ~Clock() = default;
    virtual TimeNs now() const = 0;
    virtual TimeBase timeBase() const = 0;
};

/// Nanoseconds since construction on the monotonic clock.
class MonotonicClock final : public Clock {
public:
    MonotonicClock() : start_(monotonicNs()) {}
    TimeNs now() const override { return monotonicNs() - start_; }
    TimeBase timeBase() const override { return TimeBase::Monotonic; }
    /// monotonicNs() at its zero.
    TimeNs start() const { return start_; }

private:
    TimeNs start_;
};

} // namespace vitrine::base

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A run as Chrome trace JSON, which Perfetto and chrome://tracing open.
//
// Scopes are nested slices, spans are slices on a track for each lane (what a GPU did stands under a process "GPU"; the
// argument `scope` is the `id` of the slice that launched it), memory is one counter with a key for each category
// (Perfetto shows a track for each, chrome://tracing stacks them), other counters stand alone, tokens and out-of-memory
// are instants, what the slots of a batch did are slices under a process "Batch" with a track for each slot, its queue,
// running requests and pages are counters there, allocations (when asked for) asynchronous slices. `ts` is in
// microseconds with three decimals: exact nanoseconds. The time base is named in `otherData.time_base` and in the
// process's name; times of two bases never mix.

#include <cstddef>
#include <ostream>
#include <string>

#include "base/clock.h"
#include "base/stop.h"

namespace vitrine::profiler {

class RunTimeline;

struct ChromeTraceOptions {
    std::string runName;
    base::TimeBase timeBase = base::TimeBase::Monotonic;
    bool allocations = false;            ///< every block as an asynchronous slice: large
    std::size_t memorySamples = 200'000; ///< beyond this many events, the peak and the end of equal shares of them
    base::StopToken stop;
};

/// Writes piece by piece; the caller checks the stream's state. Throws Cancelled.
void writeChromeTrace(const RunTimeline& timeline, const ChromeTraceOptions& options, std::ostream& out);

/// "monotonic", "virtual"
std::string_view timeBaseName(base::TimeBase timeBase);

} // namespace vitrine::profiler

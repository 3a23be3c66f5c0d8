// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the tracers of a run share: its sink, and the ids of its allocations, scopes and step templates. So an id stands
// for one thing in the whole run, whichever rank made it.

#include <atomic>
#include <cstdint>

#include "base/trace.h"

namespace vitrine::kernels {

/// Thread-safe but for restart(). Outlives its tracers.
class RunTrace {
public:
    explicit RunTrace(base::TraceSink& sink) : sink_(&sink) {}
    ~RunTrace() = default;
    RunTrace(const RunTrace&) = delete; // tracers hold its address
    RunTrace& operator=(const RunTrace&) = delete;

    base::TraceSink& sink() const { return *sink_; }
    /// `count` ids of allocations and scopes that follow each other; returns the first one. 0 is never an id.
    std::uint64_t takeIds(std::uint64_t count = 1) { return nextId_.fetch_add(count, std::memory_order_relaxed); }
    std::uint32_t takeTemplate() { return nextTemplate_.fetch_add(1, std::memory_order_relaxed); }

    /// From here on another run is traced. Ids go on, because allocations of the run before may still be alive.
    /// REQUIRES that no tracer is used meanwhile, and that every one is restarted after it (Tracer::restart).
    void restart(base::TraceSink& sink) { sink_ = &sink; }

private:
    base::TraceSink* sink_;
    std::atomic<std::uint64_t> nextId_ = 1;
    std::atomic<std::uint32_t> nextTemplate_ = 0;
};

} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What happened in a run on one device, by subject: each facet answers about one of them. Built from chunks as they
// arrive (run_timeline_builder.h); readers take immutable snapshots, which any thread may read. Times are nanoseconds
// since the run's start. Facets are only named here: who reads one includes its header, so that a change to a facet
// compiles its own readers anew and no others.

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/clock.h"

namespace vitrine::profiler {

class CounterFacet;
class GapFacet;
class KernelFacet;
class MemoryFacet;
class PageFacet;
class RequestFacet;
class ScopeFacet;
class StoredEvents;
class TokenFacet;
struct RunTimelineFields;

class RunTimeline {
public:
    explicit RunTimeline(RunTimelineFields parts);
    RunTimeline(const RunTimeline&) = delete; // facets hold their addresses
    RunTimeline& operator=(const RunTimeline&) = delete;
    ~RunTimeline();

    base::TimeNs begin() const { return 0; } ///< the run's start
    base::TimeNs end() const;                ///< 1 ns after the last of everything, so that [begin, end) holds it all
    /// A name of the run; empty for an id that it does not have.
    std::string_view text(std::uint32_t name) const;

    const MemoryFacet& memory() const;
    const ScopeFacet& scopes() const;
    const CounterFacet& counters() const;
    const TokenFacet& tokens() const;
    const RequestFacet& requests() const;
    const PageFacet& pages() const;
    const KernelFacet& kernels() const;
    const GapFacet& gaps() const;
    const StoredEvents& stored() const; ///< events of every kind, for events<Event>() of run_events.h

private:
    struct Facets;
    std::unique_ptr<const Facets> facets_;
};

} // namespace vitrine::profiler

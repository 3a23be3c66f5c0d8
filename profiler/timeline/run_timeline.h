// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What happened in a run on one device, by subject: each facet answers about one of them. Built from chunks as they
// arrive; readers take immutable snapshots, which any thread may read. Times are nanoseconds since the run's start.

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/column_chunk.h"
#include "base/trace.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/event_store.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/name_table.h"
#include "profiler/timeline/page_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/token_facet.h"

namespace vitrine::profiler {

struct RunTimelineFields {
    NameTable names;
    MemoryParts memory;
    ScopeParts scopes;
    CounterFacet::Samples counters;
    TokenFacet tokens;
    KernelFacet kernels;
    StoredEvents events;
};

class RunTimeline {
public:
    explicit RunTimeline(RunTimelineFields parts);
    RunTimeline(const RunTimeline&) = delete; // facets hold their addresses
    RunTimeline& operator=(const RunTimeline&) = delete;
    ~RunTimeline() = default;

    base::TimeNs begin() const { return 0; }  ///< the run's start
    base::TimeNs end() const { return end_; } ///< 1 ns after the last of everything, so that [begin, end) holds it all
    /// A name of the run; empty for an id that it does not have.
    std::string_view text(std::uint32_t name) const { return names_.text(name); }

    const MemoryFacet& memory() const { return memory_; }
    const ScopeFacet& scopes() const { return scopes_; }
    const CounterFacet& counters() const { return counters_; }
    const TokenFacet& tokens() const { return tokens_; }
    const RequestFacet& requests() const { return requests_; }
    const PageFacet& pages() const { return pages_; }
    const KernelFacet& kernels() const { return kernels_; }
    const GapFacet& gaps() const { return gaps_; }

    /// Events of any kind of EventStreams, by begin.
    template <class Event> std::span<const Event> events() const { return events_.of<Event>(); }

private:
    base::TimeNs end_ = 0;
    NameTable names_;
    MemoryFacet memory_;
    ScopeFacet scopes_;
    CounterFacet counters_;
    TokenFacet tokens_;
    KernelFacet kernels_;
    StoredEvents events_;
    RequestFacet requests_;
    PageFacet pages_;
    GapFacet gaps_;
};

/// Builds timelines from chunks, in pieces, as they arrive; snapshot() is cheap enough for 30 Hz.
class RunTimelineBuilder {
public:
    /// `rank`: of the device whose timeline is wanted. A run on several devices has a builder for each; what concerns
    /// the run as a whole (tokens, requests, gaps) is in all of their timelines.
    explicit RunTimelineBuilder(base::DeviceRank rank = 0);
    ~RunTimelineBuilder();
    RunTimelineBuilder(const RunTimelineBuilder&) = delete; // large
    RunTimelineBuilder& operator=(const RunTimelineBuilder&) = delete;

    /// Takes a chunk of any stream that the recorder writes; ignores unknown ones. Throws BadInput on damaged chunks.
    void add(const base::ColumnChunk& chunk);
    /// Everything that was added.
    std::shared_ptr<const RunTimeline> snapshot();
    /// While a saved run is being read stream by stream: leaves out what waits for streams that have not come, which
    /// snapshot() would have to take back and redo. Ends with one snapshot().
    std::shared_ptr<const RunTimeline> preview();

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::profiler

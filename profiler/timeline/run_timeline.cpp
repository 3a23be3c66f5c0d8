// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/run_timeline.h"

#include <utility>

#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/page_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline_fields.h"

namespace vitrine::profiler {

struct RunTimeline::Facets {
    explicit Facets(RunTimelineFields parts)
        : end(parts.memory.end), names(std::move(parts.names)), memory(std::move(parts.memory)),
          scopes(std::move(parts.scopes)), counters(std::move(parts.counters)), tokens(std::move(parts.tokens)),
          kernels(std::move(parts.kernels)), events(std::move(parts.events)), requests(events), pages(events),
          gaps(events) {}

    const base::TimeNs end;
    const NameTable names;
    const MemoryFacet memory;
    const ScopeFacet scopes;
    const CounterFacet counters;
    const TokenFacet tokens;
    const KernelFacet kernels;
    const StoredEvents events;
    const RequestFacet requests;
    const PageFacet pages;
    const GapFacet gaps;
};

RunTimeline::RunTimeline(RunTimelineFields parts) : facets_(std::make_unique<const Facets>(std::move(parts))) {}
RunTimeline::~RunTimeline() = default;

base::TimeNs RunTimeline::end() const {
    return facets_->end;
}

std::string_view RunTimeline::text(std::uint32_t name) const {
    return facets_->names.text(name);
}

const MemoryFacet& RunTimeline::memory() const {
    return facets_->memory;
}

const ScopeFacet& RunTimeline::scopes() const {
    return facets_->scopes;
}

const CounterFacet& RunTimeline::counters() const {
    return facets_->counters;
}

const TokenFacet& RunTimeline::tokens() const {
    return facets_->tokens;
}

const RequestFacet& RunTimeline::requests() const {
    return facets_->requests;
}

const PageFacet& RunTimeline::pages() const {
    return facets_->pages;
}

const KernelFacet& RunTimeline::kernels() const {
    return facets_->kernels;
}

const GapFacet& RunTimeline::gaps() const {
    return facets_->gaps;
}

const StoredEvents& RunTimeline::stored() const {
    return facets_->events;
}

} // namespace vitrine::profiler

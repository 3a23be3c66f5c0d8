// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a RunTimeline is made of.

#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/event_store.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/name_table.h"
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

} // namespace vitrine::profiler

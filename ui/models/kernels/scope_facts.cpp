// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kernels/scope_facts.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

std::optional<ScopeFacts> scopeFacts(const profiler::RunTimeline& timeline, const KernelTrace& trace,
                                     std::uint64_t scope) {
    const std::optional<profiler::ScopeRow> row = timeline.scopes().row(scope);
    const std::optional<TracePlace> at = trace.placeOfScope(scope);
    if (!row || !at) {
        return std::nullopt;
    }
    const TraceSpan& span = trace.tracks.front().rows[at->row].spans[at->index];
    ScopeFacts facts;
    facts.name = traceName(timeline, span);
    profiler::ScopePlaces places(timeline);
    const profiler::ScopePlace around = places.around(*row);
    QStringList place;
    if (around.step >= 0) {
        place << QObject::tr("step %1").arg(around.step);
    }
    if (around.layer >= 0) {
        place << QObject::tr("layer %1").arg(around.layer);
    }
    facts.place = place.join(QStringLiteral(", "));
    facts.time = {span.begin, span.end};
    facts.bytes = row->bytes;
    facts.flops = row->flops;
    if (const TraceTrack* kernels = trace.track(TraceTrack::Kind::Kernels)) {
        for (const TraceRow& lane : kernels->rows) {
            const auto first = std::ranges::lower_bound(lane.spans, span.begin, {}, &TraceSpan::begin);
            for (auto kernel = first; kernel != lane.spans.end() && kernel->begin < span.end; ++kernel) {
                ++facts.kernels;
                facts.kernelTime += kernel->end - kernel->begin;
            }
        }
    }
    return facts;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Searching in a trace that is there.
#include <algorithm>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/kernels/kernel_trace.h"

namespace vitrine::ui {

std::size_t TraceRow::firstEndingAfter(base::TimeNs time) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(spans, time, {}, &TraceSpan::end) - spans.begin());
}

std::size_t TraceRow::firstEndingAfter(base::TimeNs time, std::size_t from) const {
    std::size_t low = from, reach = 1;
    while (low + reach < spans.size() && spans[low + reach].end <= time) {
        low += reach;
        reach *= 2;
    }
    const auto begin = spans.begin() + static_cast<std::ptrdiff_t>(std::min(low, spans.size()));
    const auto end = spans.begin() + static_cast<std::ptrdiff_t>(std::min(low + reach + 1, spans.size()));
    return static_cast<std::size_t>(std::ranges::upper_bound(begin, end, time, {}, &TraceSpan::end) - spans.begin());
}

std::optional<std::size_t> TraceRow::at(base::TimeNs time) const {
    const std::size_t index = firstEndingAfter(time);
    return index < spans.size() && spans[index].begin <= time ? std::optional(index) : std::nullopt;
}

bool TraceTrack::anyIn(TimeRange range) const {
    return std::ranges::any_of(rows, [&](const TraceRow& row) {
        const std::size_t at = row.firstEndingAfter(range.begin);
        return at < row.spans.size() && row.spans[at].begin < range.end;
    });
}

const TraceTrack* KernelTrace::track(TraceTrack::Kind kind) const {
    const auto found = std::ranges::find(tracks, kind, &TraceTrack::kind);
    return found == tracks.end() ? nullptr : &*found;
}

std::vector<TracePlace> KernelTrace::kernelsOf(std::uint64_t scope) const {
    std::vector<TracePlace> places;
    for (const Launched& at : std::ranges::equal_range(byScope, scope, {}, &Launched::scope)) {
        places.push_back({at.row, at.index});
    }
    return places;
}

std::optional<TracePlace> KernelTrace::placeOfScope(std::uint64_t scope) const {
    const auto found = std::ranges::lower_bound(scopesAt, scope, {}, &Launched::scope);
    return found != scopesAt.end() && found->scope == scope ? std::optional(TracePlace{found->row, found->index})
                                                            : std::nullopt;
}

QString traceName(const profiler::RunTimeline& timeline, const TraceSpan& span) {
    const QString name = textOf(timeline.text(span.name));
    return span.number >= 0 ? name + QLatin1Char(' ') + QString::number(span.number) : name;
}

} // namespace vitrine::ui

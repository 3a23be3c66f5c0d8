// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What ran when, as rows that a painter can search: the nested scopes of the run (step, layer, op), then the lanes of
// the device (kernels, copies, memsets, waits) and of the host. Immutable once built; built on any thread in one pass.

#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "ui/models/common/time_cursor.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// One thing on a row.
struct TraceSpan {
    base::TimeNs begin = 0, end = 0;
    std::uint64_t scope = 0;   ///< a scope's own id; of work on a lane, the scope that launched it, 0: not known
    std::uint32_t name = 0;    ///< for RunTimeline::text
    std::int32_t number = -1;  ///< of a step or layer
    std::int64_t source = -1;  ///< index in RunTimeline::spans(); -1: a scope
    std::int8_t category = -1; ///< base::MemoryCategory that it mostly writes; -1: none
};

/// Spans by begin. Their ends rise too: what overlaps lies on another row. Where more overlap than there are rows, the
/// last row cuts a span at its successor's begin; timeline.kernels().spans()[source] has the whole.
struct TraceRow {
    QString title; ///< of the first row of its kind: "Layer"; empty below it
    std::vector<TraceSpan> spans;

    /// First span that ends after `time`; size() when none does.
    std::size_t firstEndingAfter(base::TimeNs time) const;
    /// The same from `from` on, quick when the answer is near.
    std::size_t firstEndingAfter(base::TimeNs time, std::size_t from) const;
    /// The span around an instant.
    std::optional<std::size_t> at(base::TimeNs time) const;
};

struct TraceTrack {
    enum class Kind : std::uint8_t { Scopes, Kernels, Device, Host };
    Kind kind = Kind::Device;
    QString title; ///< "Kernels"
    std::vector<TraceRow> rows;
    std::uint64_t count = 0;
    std::uint64_t cut = 0; ///< spans that the last row shows shorter than they were

    bool anyIn(TimeRange range) const;
};

/// A span's place in a track.
struct TracePlace {
    std::size_t row = 0, index = 0;
    friend bool operator==(const TracePlace&, const TracePlace&) = default;
};

struct KernelTrace {
    std::vector<TraceTrack> tracks;        ///< scopes, kernels, other lanes of the device, lanes of the host
    std::vector<base::TimeNs> eventBegins; ///< of kernels, else of ops: the axis of events
    TimeRange work;                        ///< from the first step to the end of the last, or of the events; else empty
    std::uint64_t kernels = 0, graphs = 0, ops = 0;
    std::uint64_t projected = 0; ///< steps of graphs, whose ops stand at the times of their kernels

    const TraceTrack* track(TraceTrack::Kind kind) const; ///< the first of a kind
    /// Kernels that this scope launched itself, by begin.
    std::vector<TracePlace> kernelsOf(std::uint64_t scope) const;
    /// Where a scope lies in the track of scopes.
    std::optional<TracePlace> placeOfScope(std::uint64_t scope) const;

    struct Launched {
        std::uint64_t scope = 0;
        std::uint32_t row = 0, index = 0;
    };
    std::vector<Launched> byScope;  ///< kernels, by scope
    std::vector<Launched> scopesAt; ///< scopes, by scope
};
using KernelTracePtr = std::shared_ptr<const KernelTrace>;

KernelTracePtr kernelTrace(const profiler::RunTimeline& timeline);

/// "step 214", "layer 11", "ExpertMlp", "expert_matmul"
QString traceName(const profiler::RunTimeline& timeline, const TraceSpan& span);

} // namespace vitrine::ui

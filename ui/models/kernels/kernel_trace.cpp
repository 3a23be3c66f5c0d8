// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kernels/kernel_trace.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "profiler/analysis/kernel_table.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

using base::MemoryCategory;
using base::ScopeKind;
using base::TimeNs;
using profiler::RunTimeline;
using profiler::ScopeRow;

namespace {

constexpr std::size_t kMostRows = 4; ///< of one kind; kernels of one stream overlap by one or two

/// Rows that spans are put on in the order of their begins: the first one that is free.
class RowPacker {
public:
    explicit RowPacker(QString title) : title_(std::move(title)) {}

    void add(TraceSpan span) {
        ++count_;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].spans.back().end <= span.begin) {
                rows_[i].spans.push_back(span);
                return;
            }
        }
        if (rows_.size() < kMostRows) {
            rows_.push_back({rows_.empty() ? title_ : QString(), {span}});
            return;
        }
        TraceSpan& before = rows_.back().spans.back();
        before.end = std::min(before.end, std::max(before.begin, span.begin));
        rows_.back().spans.push_back(span);
        ++cut_;
    }
    void moveInto(TraceTrack& track) {
        track.count += count_;
        track.cut += cut_;
        std::move(rows_.begin(), rows_.end(), std::back_inserter(track.rows));
    }

private:
    QString title_;
    std::vector<TraceRow> rows_;
    std::uint64_t count_ = 0, cut_ = 0;
};

struct LaneKind {
    std::string_view lane;
    TraceTrack::Kind kind;
    int order;
    const char* row; ///< title of its row in the host's track; null: the lane's own name
};

/// Lanes that the profiler writes (docs/event-streams.md), in the order in which they stand; others are the host's.
constexpr std::array kLanes = {
    LaneKind{"Kernels", TraceTrack::Kind::Kernels, 0, nullptr},
    LaneKind{"Graphs", TraceTrack::Kind::Device, 1, nullptr},
    LaneKind{"Copies", TraceTrack::Kind::Device, 2, nullptr},
    LaneKind{"Memsets", TraceTrack::Kind::Device, 3, nullptr},
    LaneKind{"Sync", TraceTrack::Kind::Host, 4, QT_TRANSLATE_NOOP("QObject", "Waits")},
    LaneKind{"Profiler overhead", TraceTrack::Kind::Host, 6, QT_TRANSLATE_NOOP("QObject", "Profiler")},
};
constexpr LaneKind kOtherLane{"", TraceTrack::Kind::Host, 5, nullptr};

const LaneKind& laneKind(std::string_view lane) {
    const auto found = std::ranges::find(kLanes, lane, &LaneKind::lane);
    return found == kLanes.end() ? kOtherLane : *found;
}

/// Where ops and layers of replayed graphs stand. Such a step is reported by its template, whose times are those of the
/// launches when it was captured: a kernel may then run before the op that the template puts later. The ops of these
/// steps stand at the times of their kernels, up to the next op's first one.
class Projection {
public:
    explicit Projection(const RunTimeline& timeline) : timeline_(timeline), places_(timeline) {
        std::uint32_t lane = 0;
        for (const base::SpanEvent& span : timeline.kernels().spans()) {
            if (lane == 0 && timeline.text(span.lane.value) == "Kernels") {
                lane = span.lane.value;
            }
            if (lane != 0 && span.lane.value == lane && span.scope.value != 0) {
                add(span);
            }
        }
        cutAndSpread();
    }

    void apply(TraceSpan& span) const {
        if (const auto found = at_.find(span.scope); found != at_.end()) {
            span.begin = found->second.begin;
            span.end = std::max(found->second.begin, found->second.end);
        }
    }
    std::size_t steps() const { return steps_.size(); }

private:
    struct Op {
        TimeRange time;
        std::uint64_t scope = 0, step = 0;
    };

    void add(const base::SpanEvent& span) {
        const auto [found, fresh] = ops_.try_emplace(span.scope.value, Op{{span.begin, span.end}, span.scope.value, 0});
        Op& op = found->second;
        if (fresh) {
            op.step = places_.of(op.scope).stepScope;
        }
        op.time.begin = std::min(op.time.begin, span.begin);
        op.time.end = std::max(op.time.end, span.end);
        const std::optional<ScopeRow> row = fresh ? timeline_.scopes().row(op.scope) : std::nullopt;
        if (op.step != 0 && row && row->kind == ScopeKind::Op && span.begin < row->begin) {
            steps_.insert(op.step);
        }
    }

    void cutAndSpread() {
        std::vector<Op> ops;
        for (const auto& [scope, op] : ops_) {
            if (steps_.contains(op.step)) {
                ops.push_back(op);
            }
        }
        std::ranges::sort(ops, {}, [](const Op& op) { return std::pair(op.time.begin, op.scope); });
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const bool next = i + 1 < ops.size() && ops[i + 1].step == ops[i].step;
            const TimeRange time{ops[i].time.begin,
                                 next ? std::min(ops[i].time.end, ops[i + 1].time.begin) : ops[i].time.end};
            at_[ops[i].scope] = time;
            const std::optional<ScopeRow> row = timeline_.scopes().row(ops[i].scope);
            const std::optional<ScopeRow> layer = row ? timeline_.scopes().row(row->parent) : std::nullopt;
            if (layer && layer->kind == ScopeKind::Layer) {
                TimeRange& whole = at_.try_emplace(layer->id, time).first->second;
                whole.end = std::max(whole.end, time.end);
            }
        }
    }

    const RunTimeline& timeline_;
    profiler::ScopePlaces places_;
    std::unordered_map<std::uint64_t, Op> ops_;
    std::unordered_set<std::uint64_t> steps_;
    std::unordered_map<std::uint64_t, TimeRange> at_;
};

/// categoryOfOp by number, so that a name's text is looked at once and not for each of a million ops.
class OpCategories {
public:
    explicit OpCategories(const RunTimeline& timeline) : timeline_(timeline) {}

    std::int8_t of(std::uint32_t op) {
        const auto [found, fresh] = known_.try_emplace(op, std::int8_t{0});
        if (fresh) {
            found->second = static_cast<std::int8_t>(profiler::categoryOfOp(timeline_, op));
        }
        return found->second;
    }

private:
    const RunTimeline& timeline_;
    std::unordered_map<std::uint32_t, std::int8_t> known_;
};

TraceTrack scopeTrack(const RunTimeline& timeline, KernelTrace& trace) {
    const Projection projection(timeline);
    trace.projected = projection.steps();
    RowPacker steps(QObject::tr("Step")), layers(QObject::tr("Layer")), ops(QObject::tr("Op")),
        inner(QObject::tr("Inside"));
    profiler::ScopePlaces places(timeline);
    std::vector<std::pair<TraceSpan, RowPacker*>> moved; // by the projection: no longer in the order of the scopes
    OpCategories categories(timeline);
    for (const ScopeRow row : timeline.scopes().all()) {
        const bool inOp = places.around(row).op != 0;
        RowPacker* packer = row.kind == ScopeKind::Step    ? &steps
                            : row.kind == ScopeKind::Layer ? &layers
                            : row.kind != ScopeKind::Op    ? nullptr
                            : inOp                         ? &inner // ops inside ops get a row of their own below
                                                           : &ops;
        if (packer == nullptr) {
            continue;
        }
        TraceSpan span;
        span.begin = row.begin;
        span.end = std::max(row.begin, profiler::scopeEnd(timeline, row));
        span.scope = row.id;
        span.name = row.name;
        span.number = row.index;
        if (row.kind == ScopeKind::Op) {
            span.category = categories.of(row.name);
            ++trace.ops;
        }
        if (projection.steps() == 0) {
            packer->add(span);
        } else {
            projection.apply(span);
            moved.emplace_back(span, packer);
        }
    }
    std::ranges::stable_sort(moved, {}, [](const auto& placed) { return placed.first.begin; });
    for (const auto& [span, packer] : moved) {
        packer->add(span);
    }
    TraceTrack track{TraceTrack::Kind::Scopes, QObject::tr("Scope"), {}, 0, 0};
    for (RowPacker* packer : {&steps, &layers, &ops, &inner}) {
        packer->moveInto(track);
    }
    return track;
}

std::vector<TraceTrack> laneTracks(const RunTimeline& timeline) {
    struct Item {
        std::uint32_t lane;
        TraceSpan span;
    };
    profiler::ScopePlaces places(timeline);
    OpCategories categories(timeline);
    std::map<std::uint32_t, LaneKind> lanes;
    std::vector<Item> items;
    const auto spans = timeline.kernels().spans();
    items.reserve(spans.size());
    for (std::size_t i = 0; i < spans.size(); ++i) {
        const base::SpanEvent& event = spans[i];
        const auto [lane, fresh] = lanes.try_emplace(event.lane.value, kOtherLane);
        if (fresh) {
            lane->second = laneKind(timeline.text(event.lane.value));
        }
        Item item{event.lane.value, {}};
        item.span.begin = event.begin;
        item.span.end = std::max(event.begin, event.end);
        item.span.scope = event.scope.value;
        item.span.name = event.name.value;
        item.span.source = static_cast<std::int64_t>(i);
        if (lane->second.kind == TraceTrack::Kind::Kernels) {
            const std::uint32_t op = places.of(event.scope.value).op;
            item.span.category = op == 0 ? static_cast<std::int8_t>(MemoryCategory::Other) : categories.of(op);
        }
        items.push_back(item);
    }
    std::ranges::stable_sort(items, {}, [](const Item& item) { return item.span.begin; });
    std::map<std::uint32_t, RowPacker> packers;
    for (const auto& [lane, kind] : lanes) {
        const bool host = kind.kind == TraceTrack::Kind::Host;
        packers.emplace(lane,
                        host ? kind.row != nullptr ? QObject::tr(kind.row) : textOf(timeline.text(lane)) : QString());
    }
    for (const Item& item : items) {
        packers.at(item.lane).add(item.span);
    }
    std::vector<std::pair<int, std::uint32_t>> order;
    order.reserve(lanes.size());
    for (const auto& [lane, kind] : lanes) {
        order.emplace_back(kind.order, lane);
    }
    std::ranges::sort(order);
    std::vector<TraceTrack> tracks;
    for (const auto& [rank, lane] : order) {
        const TraceTrack::Kind kind = lanes.at(lane).kind;
        // What the host does stands in one track, a row or more for each lane.
        if (kind != TraceTrack::Kind::Host || tracks.empty() || tracks.back().kind != kind) {
            tracks.push_back(
                {kind, kind == TraceTrack::Kind::Host ? QObject::tr("Host") : textOf(timeline.text(lane)), {}, 0, 0});
        }
        packers.at(lane).moveInto(tracks.back());
    }
    return tracks;
}

/// Puts what was appended from `middle` on where it belongs; scopes and times mostly rise along a row, which costs one
/// pass.
template <typename T, typename Less> void mergeTail(std::vector<T>& items, std::size_t middle, Less less) {
    const auto at = items.begin() + static_cast<std::ptrdiff_t>(middle);
    if (!std::is_sorted(at, items.end(), less)) {
        std::sort(at, items.end(), less);
    }
    std::inplace_merge(items.begin(), at, items.end(), less);
}

/// Places of all spans of a track, by scope, then by begin.
std::vector<KernelTrace::Launched> indexByScope(const TraceTrack& track) {
    std::vector<KernelTrace::Launched> places;
    places.reserve(track.count);
    const auto earlier = [&track](const KernelTrace::Launched& a, const KernelTrace::Launched& b) {
        return a.scope != b.scope ? a.scope < b.scope
                                  : track.rows[a.row].spans[a.index].begin < track.rows[b.row].spans[b.index].begin;
    };
    for (std::size_t row = 0; row < track.rows.size(); ++row) {
        const std::size_t before = places.size();
        for (std::size_t i = 0; i < track.rows[row].spans.size(); ++i) {
            places.push_back(
                {track.rows[row].spans[i].scope, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(i)});
        }
        mergeTail(places, before, earlier);
    }
    return places;
}

/// What the steps take. Kernels that end after the last step's launch belong to it; those before the first one load.
TimeRange workOf(const TraceTrack& scopes, const TraceTrack* kernels) {
    std::optional<TimeRange> work;
    const auto take = [&work](const TraceSpan& span) {
        work = work ? TimeRange{std::min(work->begin, span.begin), std::max(work->end, span.end)}
                    : TimeRange{span.begin, span.end};
    };
    const auto takeAll = [&take](const TraceTrack& track, base::TimeNs from) {
        for (const TraceRow& row : track.rows) {
            for (const TraceSpan& span : row.spans) {
                if (span.begin >= from) {
                    take(span);
                }
            }
        }
    };
    // The rows of the steps stand first, and the first of them alone has their title.
    const QString step = QObject::tr("Step");
    for (std::size_t i = 0;
         i < scopes.rows.size() && (i == 0 ? scopes.rows[i].title == step : scopes.rows[i].title.isEmpty()); ++i) {
        std::ranges::for_each(scopes.rows[i].spans, take);
    }
    if (!work) {
        takeAll(kernels != nullptr ? *kernels : scopes, std::numeric_limits<base::TimeNs>::min());
    } else if (kernels != nullptr) {
        takeAll(*kernels, work->begin);
    }
    return work.value_or(TimeRange{});
}

} // namespace

KernelTracePtr kernelTrace(const RunTimeline& timeline) {
    auto trace = std::make_shared<KernelTrace>();
    trace->tracks.push_back(scopeTrack(timeline, *trace));
    trace->scopesAt = indexByScope(trace->tracks.front());
    for (TraceTrack& track : laneTracks(timeline)) {
        trace->tracks.push_back(std::move(track));
    }
    const TraceTrack* kernels = trace->track(TraceTrack::Kind::Kernels);
    for (const TraceTrack& track : trace->tracks) {
        trace->graphs += track.title == QLatin1String("Graphs") ? track.count : 0;
    }
    if (kernels != nullptr) {
        trace->kernels = kernels->count;
        trace->byScope = indexByScope(*kernels);
    }
    for (const TraceRow& row : kernels != nullptr ? kernels->rows : trace->tracks.front().rows) {
        const std::size_t before = trace->eventBegins.size();
        for (const TraceSpan& span : row.spans) {
            trace->eventBegins.push_back(span.begin);
        }
        mergeTail(trace->eventBegins, before, std::less());
    }
    trace->work = workOf(trace->tracks.front(), kernels);
    return trace;
}

} // namespace vitrine::ui

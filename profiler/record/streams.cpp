// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/streams.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "profiler/record/column_io.h"
#include "profiler/record/stream_writer.h"

namespace vitrine::profiler {

using base::ColumnChunk;

namespace {

template <class Record, class EventOf>
void describeAllocation(ColumnWriter& writer, std::span<const Record> rows, EventOf eventOf) {
    writer.unsignedColumn("id", rows, [&](const Record& r) { return eventOf(r).id; });
    writer.unsignedColumn("address", rows, [&](const Record& r) { return eventOf(r).address; });
    writer.unsignedColumn("bytes", rows, [&](const Record& r) { return eventOf(r).bytes; });
    writer.unsignedColumn("scope", rows, [&](const Record& r) { return eventOf(r).scope.value; });
    writer.unsignedColumn("name", rows, [&](const Record& r) { return eventOf(r).name.value; });
    writer.unsignedColumn("category", rows,
                          [&](const Record& r) { return static_cast<std::uint64_t>(eventOf(r).category); });
    writer.unsignedColumn("space", rows, [&](const Record& r) { return static_cast<std::uint64_t>(eventOf(r).space); });
    writer.unsignedColumn("dtype", rows, [&](const Record& r) { return eventOf(r).dtype; });
    writer.unsignedColumn("rank", rows, [&](const Record& r) { return eventOf(r).dimensions; });
    writer.optionalColumn(kFormatColumn, rows, [&](const Record& r) { return eventOf(r).format.value; });
    int most = 0;
    for (const Record& record : rows) {
        most = std::max<int>(most, eventOf(record).dimensions);
    }
    for (int axis = 0; axis < std::min(most, base::kMaxTraceDimensions); ++axis) {
        writer.signedColumn(kShapeColumns[axis], rows,
                            [&](const Record& r) { return eventOf(r).shape[static_cast<std::size_t>(axis)]; });
    }
}

void encodeMemory(const EventBatch& batch, ChunkNumbers& numbers, std::vector<ColumnChunk>& out) {
    using Allocation = Ordered<base::AllocationEvent>;
    using Free = Ordered<base::FreeEvent>;
    using Replay = Ordered<base::StepReplayedEvent>;
    encodeStream<Allocation>(kAllocationsStream, batch.allocations, numbers, out, [](ColumnWriter& w, auto rows) {
        w.unsignedColumn("order", rows, [](const Allocation& r) { return r.order; });
        w.timeColumn("time", rows, [](const Allocation& r) { return r.event.time; });
        describeAllocation(w, rows, [](const Allocation& r) -> const base::AllocationEvent& { return r.event; });
        w.optionalColumn(kDeviceColumn, rows, [](const Allocation& r) { return r.event.device; });
    });
    encodeStream<Free>(kFreesStream, batch.frees, numbers, out, [](ColumnWriter& w, auto rows) {
        w.unsignedColumn("order", rows, [](const Free& r) { return r.order; });
        w.timeColumn("time", rows, [](const Free& r) { return r.event.time; });
        w.unsignedColumn("id", rows, [](const Free& r) { return r.event.id; });
        w.optionalColumn(kDeviceColumn, rows, [](const Free& r) { return r.event.device; });
    });
    encodeStream<Replay>(kReplaysStream, batch.replays, numbers, out, [](ColumnWriter& w, auto rows) {
        w.unsignedColumn("order", rows, [](const Replay& r) { return r.order; });
        w.timeColumn("begin", rows, [](const Replay& r) { return r.event.begin; });
        w.timeColumn("end", rows, [](const Replay& r) { return r.event.end; });
        w.unsignedColumn("template", rows, [](const Replay& r) { return r.event.stepTemplate; });
        w.unsignedColumn("first_id", rows, [](const Replay& r) { return r.event.firstId; });
        w.unsignedColumn("parent", rows, [](const Replay& r) { return r.event.parent.value; });
        w.signedColumn("index", rows, [](const Replay& r) { return r.event.index; });
        w.optionalColumn(kDeviceColumn, rows, [](const Replay& r) { return r.event.device; });
    });
}

void encodeScopes(const EventBatch& batch, ChunkNumbers& numbers, std::vector<ColumnChunk>& out) {
    using Begin = base::ScopeBeginEvent;
    using End = base::ScopeEndEvent;
    using Span = base::SpanEvent;
    encodeStream<Begin>(kScopeBeginsStream, batch.scopeBegins, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("time", rows, [](const Begin& r) { return r.time; });
        w.unsignedColumn("id", rows, [](const Begin& r) { return r.id.value; });
        w.unsignedColumn("parent", rows, [](const Begin& r) { return r.parent.value; });
        w.unsignedColumn("kind", rows, [](const Begin& r) { return static_cast<std::uint64_t>(r.kind); });
        w.unsignedColumn("name", rows, [](const Begin& r) { return r.name.value; });
        w.signedColumn("index", rows, [](const Begin& r) { return r.index; });
        w.signedColumn("tokens", rows, [](const Begin& r) { return r.tokens; });
        w.optionalColumn(kOpCategoryColumn, rows, [](const Begin& r) {
            return r.category == base::MemoryCategory::Other ? 0 : static_cast<std::uint64_t>(r.category) + 1;
        });
        w.optionalColumn(kDeviceColumn, rows, [](const Begin& r) { return r.device; });
    });
    encodeStream<End>(kScopeEndsStream, batch.scopeEnds, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("time", rows, [](const End& r) { return r.time; });
        w.unsignedColumn("id", rows, [](const End& r) { return r.id.value; });
        w.unsignedColumn("bytes", rows, [](const End& r) { return r.bytes; });
        w.unsignedColumn("flops", rows, [](const End& r) { return r.flops; });
        w.optionalColumn(kDeviceColumn, rows, [](const End& r) { return r.device; });
    });
    encodeStream<Span>(kSpansStream, batch.spans, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("begin", rows, [](const Span& r) { return r.begin; });
        w.timeColumn("end", rows, [](const Span& r) { return r.end; });
        w.unsignedColumn("lane", rows, [](const Span& r) { return r.lane.value; });
        w.unsignedColumn("name", rows, [](const Span& r) { return r.name.value; });
        w.unsignedColumn("scope", rows, [](const Span& r) { return r.scope.value; });
        w.unsignedColumn("bytes", rows, [](const Span& r) { return r.bytes; });
        w.unsignedColumn("flops", rows, [](const Span& r) { return r.flops; });
        w.optionalColumn(kDeviceColumn, rows, [](const Span& r) { return r.device; });
        w.optionalColumn("stream", rows, [](const Span& r) { return r.stream; });
    });
}

void encodeValues(const EventBatch& batch, ChunkNumbers& numbers, std::vector<ColumnChunk>& out) {
    using Counter = base::CounterEvent;
    using Token = base::TokenEvent;
    using Oom = Ordered<base::OutOfMemoryEvent>;
    using Text = EventBatch::Text;
    encodeStream<Text>(kStringsStream, batch.strings, numbers, out, [](ColumnWriter& w, auto rows) {
        w.unsignedColumn("id", rows, [](const Text& r) { return r.id; });
        w.textColumn("text", rows, [](const Text& r) { return r.text; });
    });
    encodeStream<Counter>(kCountersStream, batch.counters, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("time", rows, [](const Counter& r) { return r.time; });
        w.unsignedColumn("name", rows, [](const Counter& r) { return r.name.value; });
        w.realColumn("value", rows, [](const Counter& r) { return r.value; });
        w.optionalColumn(kDeviceColumn, rows, [](const Counter& r) { return r.device; });
    });
    encodeStream<Token>(kTokensStream, batch.tokens, numbers, out, [](ColumnWriter& w, auto rows) {
        w.timeColumn("time", rows, [](const Token& r) { return r.time; });
        w.signedColumn("request", rows, [](const Token& r) { return r.request; });
        w.signedColumn("position", rows, [](const Token& r) { return r.position; });
        w.signedColumn("token", rows, [](const Token& r) { return r.token; });
        w.realColumn("logprob", rows, [](const Token& r) { return static_cast<double>(r.logprob); });
    });
    encodeStream<Oom>(kOutOfMemoryStream, batch.outOfMemory, numbers, out, [](ColumnWriter& w, auto rows) {
        w.unsignedColumn("order", rows, [](const Oom& r) { return r.order; });
        w.timeColumn("time", rows, [](const Oom& r) { return r.event.time; });
        w.unsignedColumn("requested", rows, [](const Oom& r) { return r.event.requested; });
        w.unsignedColumn("budget", rows, [](const Oom& r) { return r.event.budget; });
        w.unsignedColumn("held", rows, [](const Oom& r) { return r.event.reserved; });
        w.unsignedColumn("largest_free", rows, [](const Oom& r) { return r.event.largestFree; });
        w.unsignedColumn("scope", rows, [](const Oom& r) { return r.event.scope.value; });
        w.unsignedColumn("name", rows, [](const Oom& r) { return r.event.name.value; });
        w.unsignedColumn("category", rows, [](const Oom& r) { return static_cast<std::uint64_t>(r.event.category); });
        w.optionalColumn(kDeviceColumn, rows, [](const Oom& r) { return r.event.device; });
        w.optionalColumn("arena", rows, [](const Oom& r) { return r.event.arena.value; });
        w.optionalColumn("arena_bytes", rows, [](const Oom& r) { return r.event.arenaBytes; });
        w.optionalColumn("arena_idle", rows, [](const Oom& r) { return r.event.arenaIdle; });
    });
}

/// A template's event in the union of all columns.
struct TemplateRecord {
    const base::StepTemplate* step = nullptr;
    TemplateRow kind = TemplateRow::Header;
    base::AllocationEvent allocation; ///< id, scope, name, time serve the other kinds too
    base::TimeNs end = 0;
    std::uint64_t parent = 0, flops = 0, lane = 0, scopeKind = 0;
    std::int64_t index = -1, tokens = 0;
};

struct TemplateFlattener {
    std::vector<TemplateRecord>& out;
    const base::StepTemplate* step;

    TemplateRecord& add(TemplateRow kind, base::TimeNs time) {
        TemplateRecord& record = out.emplace_back();
        record.step = step;
        record.kind = kind;
        record.allocation.time = time;
        return record;
    }
    void operator()(const base::AllocationEvent& event) { add(TemplateRow::Allocation, event.time).allocation = event; }
    void operator()(const base::FreeEvent& event) { add(TemplateRow::Free, event.time).allocation.id = event.id; }
    void operator()(const base::ScopeBeginEvent& event) {
        TemplateRecord& record = add(TemplateRow::ScopeBegin, event.time);
        record.allocation.id = event.id.value;
        record.allocation.name = event.name;
        record.allocation.category = event.category;
        record.parent = event.parent.value;
        record.scopeKind = static_cast<std::uint64_t>(event.kind);
        record.index = event.index;
        record.tokens = event.tokens;
    }
    void operator()(const base::ScopeEndEvent& event) {
        TemplateRecord& record = add(TemplateRow::ScopeEnd, event.time);
        record.allocation.id = event.id.value;
        record.allocation.bytes = event.bytes;
        record.flops = event.flops;
    }
    void operator()(const base::SpanEvent& event) {
        TemplateRecord& record = add(TemplateRow::Span, event.begin);
        record.end = event.end;
        record.lane = event.lane.value;
        record.allocation.name = event.name;
        record.allocation.scope = event.scope;
        record.allocation.bytes = event.bytes;
        record.flops = event.flops;
    }
    template <class Other> void operator()(const Other&) {
        throw base::Internal("a step template holds an event that is neither memory, scope nor span");
    }
};

void encodeTemplates(const EventBatch& batch, ChunkNumbers& numbers, std::vector<ColumnChunk>& out) {
    using Row = TemplateRecord;
    std::vector<Row> rows;
    const auto write = [&] {
        if (rows.empty()) {
            return;
        }
        const std::span<const Row> view = rows;
        ColumnWriter w(std::string(kTemplatesStream), numbers.take(std::string(kTemplatesStream)), rows.size());
        w.unsignedColumn("template", view, [](const Row& r) { return r.step->id; });
        w.signedColumn("duration", view, [](const Row& r) { return r.step->duration; });
        w.unsignedColumn("id_count", view, [](const Row& r) { return r.step->idCount; });
        w.unsignedColumn("kind", view, [](const Row& r) { return static_cast<std::uint64_t>(r.kind); });
        w.signedColumn("time", view, [](const Row& r) { return r.allocation.time; });
        w.signedColumn("end", view, [](const Row& r) { return r.end; });
        w.unsignedColumn("parent", view, [](const Row& r) { return r.parent; });
        w.unsignedColumn("flops", view, [](const Row& r) { return r.flops; });
        w.unsignedColumn("lane", view, [](const Row& r) { return r.lane; });
        w.unsignedColumn("scope_kind", view, [](const Row& r) { return r.scopeKind; });
        w.signedColumn("index", view, [](const Row& r) { return r.index; });
        w.signedColumn("tokens", view, [](const Row& r) { return r.tokens; });
        describeAllocation(w, view, [](const Row& r) -> const base::AllocationEvent& { return r.allocation; });
        out.push_back(std::move(w).finish());
        rows.clear();
    };
    for (const auto& step : batch.templates) {
        if (!rows.empty() && rows.size() + step->events.size() + 1 > kRowsPerChunk) {
            write();
        }
        TemplateFlattener flatten{rows, step.get()};
        flatten.add(TemplateRow::Header, 0);
        for (const base::TraceEvent& event : step->events) {
            std::visit(flatten, event);
        }
    }
    write();
}

} // namespace

bool EventBatch::empty() const {
    return strings.empty() && allocations.empty() && frees.empty() && scopeBegins.empty() && scopeEnds.empty() &&
           spans.empty() && counters.empty() && tokens.empty() && outOfMemory.empty() && templates.empty() &&
           replays.empty() && std::apply([](const auto&... of) { return (of.empty() && ...); }, events);
}

void EventBatch::clear() {
    strings.clear();
    allocations.clear();
    frees.clear();
    scopeBegins.clear();
    scopeEnds.clear();
    spans.clear();
    counters.clear();
    tokens.clear();
    outOfMemory.clear();
    templates.clear();
    replays.clear();
    std::apply([](auto&... of) { (of.clear(), ...); }, events);
}

std::uint64_t ChunkNumbers::take(const std::string& stream) {
    const auto it = std::ranges::find(next_, stream, &std::pair<std::string, std::uint64_t>::first);
    if (it != next_.end()) {
        return it->second++;
    }
    next_.emplace_back(stream, 1);
    return 0;
}

std::vector<ColumnChunk> encodeBatch(const EventBatch& batch, ChunkNumbers& numbers) {
    std::vector<ColumnChunk> out;
    encodeValues(batch, numbers, out);
    encodeTemplates(batch, numbers, out);
    encodeScopes(batch, numbers, out);
    encodeMemory(batch, numbers, out);
    encodeEvents<EventStreams>(batch.events, numbers, out);
    return out;
}

std::string pyramidStream(int level, base::DeviceRank device) {
    const std::string stream = std::string(kPyramidPrefix) + std::to_string(level);
    return device == 0 ? stream : stream + std::string(kPyramidDevice) + std::to_string(device);
}

void encodePyramid(std::span<const PyramidNode> nodes, int level, base::DeviceRank device, ChunkNumbers& numbers,
                   std::vector<ColumnChunk>& out) {
    using Node = PyramidNode;
    const std::string stream = pyramidStream(level, device);
    encodeStream<Node>(stream, nodes, numbers, out, [](ColumnWriter& w, auto rows) {
        w.unsignedColumn("first_event", rows, [](const Node& r) { return r.firstEvent; });
        w.unsignedColumn("events", rows, [](const Node& r) { return r.count; });
        w.timeColumn("begin", rows, [](const Node& r) { return r.timeBegin; });
        w.timeColumn("end", rows, [](const Node& r) { return r.timeEnd; });
        w.unsignedColumn("min_total", rows, [](const Node& r) { return r.minTotal; });
        w.unsignedColumn("max_total", rows, [](const Node& r) { return r.maxTotal; });
        w.signedColumn("max_time", rows, [](const Node& r) { return r.maxTime; });
        for (std::size_t category = 0; category < base::kCategoryCount; ++category) {
            const std::string name(base::categoryName(static_cast<base::MemoryCategory>(category)));
            w.unsignedColumn(name, rows, [category](const Node& r) { return r.atMax[category]; });
            w.unsignedColumn("end_" + name, rows, [category](const Node& r) { return r.atEnd[category]; });
        }
    });
}

bool isMemoryStream(std::string_view stream) {
    return stream == kAllocationsStream || stream == kFreesStream || stream == kReplaysStream;
}

std::vector<std::string> inLoadOrder(std::vector<std::string> streams) {
    const auto rank = [](const std::string& stream) {
        const int level = pyramidLevel(stream);
        const bool first = stream == kStringsStream || stream == GapStream::kName;
        return std::tuple(first ? 0 : level >= 0 ? 1 : stream == kTemplatesStream ? 2 : 3, -level);
    };
    std::ranges::stable_sort(streams, {}, rank);
    return streams;
}

} // namespace vitrine::profiler

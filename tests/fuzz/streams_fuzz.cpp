// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Chunks of a run whose columns hold any values at all: the timeline takes them or throws BadInput, and what it took
// can be asked everything. The checksums and encodings of chunks are column_chunk_fuzz's subject; here each input
// replaces columns of well-formed chunks: chunk, column, rows, then values.

#include "profiler/record/streams.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/timeline_rows.h"

namespace base = vitrine::base;
namespace profiler = vitrine::profiler;

namespace {

/// Something in every stream.
std::vector<base::ColumnChunk> wellFormed() {
    profiler::EventBatch batch;
    batch.strings = {{1, "kv_cache"}, {2, "ExpertMlp"}};
    base::AllocationEvent block;
    block.time = 5;
    block.id = 10;
    block.address = 0x7000'0000'0000;
    block.bytes = 4096;
    block.scope.value = 3;
    block.name.value = 1;
    block.device = 2;
    block.shape = {4, 8};
    auto step = std::make_shared<base::StepTemplate>();
    step->id = 2;
    step->duration = 100;
    step->idCount = 3;
    base::AllocationEvent inner = block;
    inner.time = 0;
    inner.id = 1;
    step->events = {base::ScopeBeginEvent{0, {0}, {0}, base::ScopeKind::Step, {1}, -1, 7}, inner,
                    base::FreeEvent{50, 1}, base::SpanEvent{60, 70, {1}, {2}, {0}, 5, 6},
                    base::ScopeEndEvent{100, {0}, 11, 12}};
    batch.scopeBegins = {{1, {3}, {0}, base::ScopeKind::Step, {1}, 4, 65536}};
    batch.scopeEnds = {{900, {3}, 1000, 2000}};
    batch.allocations = {{0, block}};
    batch.templates = {step};
    batch.replays = {{1, {10, 110, 2, 500, {3}, 9}}};
    batch.frees = {{3, {800, 10}}};
    batch.spans = {{1, 4, {1}, {2}, {3}, 77, 88}};
    batch.counters = {{2, {2}, 0.25}};
    batch.tokens = {{8, 1, 2, 200'000, -0.5F}};
    batch.outOfMemory = {{2, {700, 100, 80, 70, 5, {3}, {1}, base::MemoryCategory::Logits}}};
    profiler::ChunkNumbers numbers;
    std::vector<base::ColumnChunk> chunks = profiler::encodeBatch(batch, numbers);
    profiler::PyramidNode node;
    node.count = 4;
    node.timeBegin = 5;
    node.timeEnd = 800;
    node.maxTotal = 8192;
    node.maxTime = 10;
    node.atMax[3] = 8192;
    profiler::encodePyramid(std::vector<profiler::PyramidNode>{node}, 0, 0, numbers, chunks);
    return chunks;
}

/// The input's bytes, zeros after their end.
class Bytes {
public:
    Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    bool empty() const { return left_ == 0; }
    std::uint8_t byte() {
        if (left_ == 0) {
            return 0;
        }
        --left_;
        return *data_++;
    }
    /// Small numbers, borders, and any word.
    std::uint64_t word() {
        const std::uint8_t kind = byte();
        if (kind < 128) {
            return kind;
        }
        if (kind < 192) {
            return (std::uint64_t{1} << (kind & 63U)) - (kind & 1U);
        }
        std::uint64_t value = 0;
        for (int i = 0; i < 8; ++i) {
            value = value << 8 | byte();
        }
        return value;
    }

private:
    const std::uint8_t* data_;
    std::size_t left_;
};

/// The column with `rows` values: those that it had, the last one again where there are more rows now.
template <class Value>
base::Column stretched(const base::Column& column, std::vector<Value> values, std::uint64_t rows) {
    const Value last = values.empty() ? Value{} : values.back();
    values.resize(rows, last);
    return base::encodeColumn(column.name, std::span<const Value>(values));
}

base::Column stretched(const base::Column& column, std::uint64_t rows, std::uint64_t newRows) {
    switch (column.type) {
    case base::ColumnType::Int64:
        return stretched(column, base::decodeInt64(column, rows), newRows);
    case base::ColumnType::UInt64:
        return stretched(column, base::decodeUInt64(column, rows), newRows);
    case base::ColumnType::Float64:
        return stretched(column, base::decodeFloat64(column, rows), newRows);
    case base::ColumnType::Text:
        break;
    }
    return stretched(column, base::decodeText(column, rows), newRows);
}

base::Column replaced(const base::Column& column, std::uint64_t rows, Bytes& bytes) {
    std::vector<std::int64_t> whole(rows);
    std::vector<std::uint64_t> natural(rows);
    std::vector<double> real(rows);
    std::vector<std::string> text(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        natural[row] = bytes.word();
        whole[row] = static_cast<std::int64_t>(natural[row]);
        std::memcpy(&real[row], &natural[row], sizeof(double));
        text[row] = std::string(natural[row] % 64, static_cast<char>(natural[row] >> 6));
    }
    switch (column.type) {
    case base::ColumnType::Int64:
        return base::encodeColumn(column.name, std::span<const std::int64_t>(whole));
    case base::ColumnType::UInt64:
        return base::encodeColumn(column.name, std::span<const std::uint64_t>(natural));
    case base::ColumnType::Float64:
        return base::encodeColumn(column.name, std::span<const double>(real));
    case base::ColumnType::Text:
        break;
    }
    return base::encodeColumn(column.name, std::span<const std::string>(text));
}

void change(std::vector<base::ColumnChunk>& chunks, Bytes& bytes) {
    base::ColumnChunk& chunk = chunks[bytes.byte() % chunks.size()];
    const std::size_t target = bytes.byte() % chunk.columns.size();
    const std::uint64_t rows = bytes.byte() % 9;
    for (std::size_t i = 0; i < chunk.columns.size(); ++i) {
        base::Column& column = chunk.columns[i];
        column = i == target ? replaced(column, rows, bytes) : stretched(column, chunk.rows, rows);
    }
    chunk.rows = rows;
}

void askEverything(const profiler::RunTimeline& timeline) {
    const base::TimeNs begin = timeline.begin();
    const base::TimeNs end = timeline.end();
    for (const auto& columns :
         {timeline.memory().query(begin, end, 7), timeline.memory().queryEvents(0, timeline.memory().events(), 5)}) {
        for (const profiler::MemoryColumn& column : columns) {
            const std::uint64_t sum = std::accumulate(column.atMax.begin(), column.atMax.end(), std::uint64_t{0});
            if (sum != column.maxTotal || column.minTotal > column.maxTotal) {
                std::abort();
            }
        }
    }
    timeline.memory().peaks(5);
    timeline.memory().totals(begin, end);
    timeline.memory().hostQuery(begin, end, 3);
    timeline.memory().aliveAt((begin + end) / 2);
    timeline.memory().aliveAtEvent(timeline.memory().events() / 2);
    timeline.memory().atEvent(timeline.memory().events());
    for (const bool byAddress : {false, true}) {
        const std::uint64_t extent = timeline.memory().extent(byAddress);
        timeline.memory().shapes(begin, end, static_cast<double>(end - begin) / 64.0,
                                 std::max(1.0, static_cast<double>(extent) / 64.0), byAddress);
    }
    const auto scopes = timeline.scopes().all();
    for (std::size_t i = 0; i < std::min<std::size_t>(scopes.size(), 20); ++i) {
        timeline.scopes().path(scopes[i].id);
    }
    for (std::size_t i = 0; i < timeline.memory().outOfMemory().size(); ++i) {
        timeline.memory().eventsBeforeOutOfMemory(i);
    }
    for (const std::string& name : timeline.counters().names()) {
        timeline.counters().samples(name);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::vector<base::ColumnChunk> kPattern = wellFormed();
    std::vector<base::ColumnChunk> chunks = kPattern;
    Bytes bytes(data, size);
    const bool loadOrder = (bytes.byte() & 1U) != 0;
    for (int changes = 0; changes < 6 && !bytes.empty(); ++changes) {
        change(chunks, bytes);
    }
    if (loadOrder) {
        std::reverse(chunks.begin(), chunks.end());
    }
    profiler::RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : chunks) {
        try {
            builder.add(chunk);
        } catch (const base::BadInput&) {
            continue; // the others may be whole
        }
    }
    try {
        askEverything(*builder.preview());
        askEverything(*builder.snapshot());
    } catch (const base::BadInput&) {
        return 0;
    }
    return 0;
}

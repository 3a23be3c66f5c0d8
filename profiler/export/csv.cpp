// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/export/csv.h"

#include <fmt/format.h>
#include <string>

#include "kernels/core/dtype.h"
#include "profiler/analysis/kernel_table.h"
#include "profiler/export/export_names.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/page_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

namespace {

constexpr std::size_t kCsvFlushBytes = 1 << 16;

/// Writes cells and rows.
class Table {
public:
    Table(std::ostream& out, std::string_view head) : out_(out), text_(head) { text_ += '\n'; }
    ~Table() = default;
    Table(const Table&) = delete; // one writer of a stream
    Table& operator=(const Table&) = delete;

    Table& text(std::string_view value) {
        separate();
        if (value.find_first_of(",\"\n\r") == std::string_view::npos) {
            text_ += value;
            return *this;
        }
        text_ += '"';
        for (const char c : value) {
            text_ += c == '"' ? "\"\"" : std::string(1, c);
        }
        text_ += '"';
        return *this;
    }
    template <class Number> Table& number(Number value) {
        separate();
        fmt::format_to(std::back_inserter(text_), "{}", value);
        return *this;
    }
    Table& unlessNegative(std::int64_t value) { return value < 0 ? text("") : number(value); }
    Table& time(base::TimeNs value) { return unlessNegative(value); }
    void endRow() {
        text_ += '\n';
        first_ = true;
        if (text_.size() > kCsvFlushBytes) {
            finish();
        }
    }
    void finish() {
        out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
        text_.clear();
    }

private:
    void separate() {
        text_ += first_ ? "" : ",";
        first_ = false;
    }

    std::ostream& out_;
    std::string text_;
    bool first_ = true;
};

std::string_view spaceName(base::MemorySpace space) {
    switch (space) {
    case base::MemorySpace::Device:
        return "device";
    case base::MemorySpace::PinnedHost:
        return "pinned_host";
    case base::MemorySpace::Host:
        break;
    }
    return "host";
}

std::string shapeText(const AllocationRow& row) {
    std::string text;
    for (std::size_t axis = 0; axis < row.dimensions; ++axis) {
        text += fmt::format("{}{}", axis == 0 ? "" : "x", row.shape[axis]);
    }
    return text;
}

/// Paths of scopes, each looked up once while neighbours share it.
class Paths {
public:
    explicit Paths(const RunTimeline& timeline) : timeline_(timeline) {}
    const std::string& of(std::uint64_t scope) {
        if (!known_ || scope != scope_) {
            path_ = timeline_.scopes().path(scope);
            scope_ = scope;
            known_ = true;
        }
        return path_;
    }

private:
    const RunTimeline& timeline_;
    bool known_ = false;
    std::uint64_t scope_ = 0;
    std::string path_;
};

} // namespace

void writeAllocationsCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "id,name,category,space,bytes,address,born_ns,freed_ns,dtype,shape,scope,path,format");
    Paths paths(timeline);
    for (const AllocationRow& row : timeline.memory().allocations()) {
        const auto dtype = static_cast<kernels::DType>(row.dtype);
        table.number(row.id).text(timeline.text(row.name)).text(base::categoryName(row.category));
        table.text(spaceName(row.space)).number(row.bytes).number(row.address).time(row.born).time(row.freed);
        table.text(dtype == kernels::DType::None ? std::string_view() : kernels::dtypeName(dtype)).text(shapeText(row));
        table.number(row.scope).text(paths.of(row.scope)).text(timeline.text(row.format)).endRow();
    }
    table.finish();
}

void writeScopesCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "id,parent,kind,name,index,tokens,begin_ns,end_ns,bytes,flops,path");
    Paths paths(timeline);
    for (const ScopeRow& row : timeline.scopes().all()) {
        table.number(row.id).number(row.parent).text(scopeKindName(row.kind)).text(timeline.text(row.name));
        table.unlessNegative(row.index)
            .number(row.tokens)
            .time(row.begin)
            .time(row.end)
            .number(row.bytes)
            .number(row.flops);
        table.text(paths.of(row.id)).endRow();
    }
    table.finish();
}

void writeCountersCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "time_ns,name,value");
    for (const std::string& name : timeline.counters().names()) {
        for (const auto& [time, value] : timeline.counters().samples(name)) {
            table.time(time).text(name).number(value).endRow();
        }
    }
    table.finish();
}

void writeSpansCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "lane,name,begin_ns,end_ns,bytes,flops,scope");
    for (const base::SpanEvent& span : timeline.kernels().spans()) {
        table.text(timeline.text(span.lane.value)).text(timeline.text(span.name.value));
        table.time(span.begin).time(span.end).number(span.bytes).number(span.flops);
        table.number(span.scope.value).endRow();
    }
    table.finish();
}

void writeKernelsCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "name,op,launches,total_ns,mean_ns,min_ns,max_ns,share,bytes,flops,bytes_per_second");
    for (const KernelRow& row : kernelTable(timeline).kernels) {
        table.text(row.name).text(row.op).number(row.launches).time(row.total).number(row.mean());
        table.time(row.shortest).time(row.longest).number(row.share);
        table.number(row.bytes).number(row.flops).number(row.bytesPerSecond()).endRow();
    }
    table.finish();
}

void writeBatchStepsCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out,
                "index,begin_ns,end_ns,decode_rows,prefill_rows,padding_rows,prefill_tokens,padding_tokens,sampled,"
                "queued,running,preempted,used_pages,shared_pages,cached_pages,free_pages");
    for (const base::BatchStepEvent& step : timeline.requests().steps()) {
        table.number(step.index).time(step.begin).time(step.end).number(step.decodeRows).number(step.prefillRows);
        table.number(step.paddingRows).number(step.prefillTokens).number(step.paddingTokens).number(step.sampled);
        table.number(step.queued).number(step.running).number(step.preempted).number(step.usedPages);
        table.number(step.sharedPages).number(step.cachedPages).number(step.freePages).endRow();
    }
    table.finish();
}

void writeBatchSlotsCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "slot,state,request,begin_ns,end_ns,first_step,steps,tokens,padding");
    for (const base::SlotSpanEvent& span : timeline.requests().slotSpans()) {
        table.number(span.slot).text(slotStateName(span.state)).unlessNegative(span.request).time(span.begin);
        table.time(span.end).number(span.firstStep).number(span.steps).number(span.tokens).number(span.padding);
        table.endRow();
    }
    table.finish();
}

void writeBatchRequestsCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "request,phase,time_ns,slot,step,tokens,reason");
    for (const base::RequestEvent& event : timeline.requests().events()) {
        table.number(event.request).text(requestPhaseName(event.phase)).number(event.time).unlessNegative(event.slot);
        table.unlessNegative(event.step).number(event.tokens);
        // The sequence stands where sessions of earlier versions have it.
        table.text(event.sequence >= 0 ? std::to_string(event.sequence) : timeline.text(event.reason.value)).endRow();
    }
    table.finish();
}

void writeKvPagesCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "time_ns,group,page,state,owner,sequences");
    for (const base::KvPageEvent& event : timeline.pages().all()) {
        table.time(event.time).number(event.group).number(event.page).text(pageStateName(event.state));
        table.unlessNegative(event.owner).number(event.sequences).endRow();
    }
    table.finish();
}

void writeGapsCsv(const RunTimeline& timeline, std::ostream& out) {
    Table table(out, "begin_ns,end_ns,records,memory_records");
    for (const base::GapEvent& gap : timeline.gaps().all()) {
        table.time(gap.begin).time(gap.end).number(gap.records).number(gap.memoryRecords).endRow();
    }
    table.finish();
}

void writeTotalsCsv(const RunTimeline& timeline, int rows, std::ostream& out) {
    std::string head = "begin_ns,end_ns,events,min_total,max_total,max_time_ns";
    for (std::size_t i = 0; i < base::kCategoryCount; ++i) {
        head += fmt::format(",{}", base::categoryName(static_cast<base::MemoryCategory>(i)));
    }
    Table table(out, head);
    const base::TimeNs begin = timeline.begin();
    const base::TimeNs end = timeline.end();
    const std::vector<MemoryColumn> columns = timeline.memory().query(begin, end, rows);
    const auto count = static_cast<__int128>(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto border = [&](std::size_t index) {
            return begin +
                   static_cast<base::TimeNs>(static_cast<__int128>(end - begin) * static_cast<__int128>(index) / count);
        };
        const MemoryColumn& column = columns[i];
        table.time(border(i)).time(border(i + 1)).number(column.events).number(column.minTotal);
        table.number(column.maxTotal).time(column.maxTime);
        for (const std::uint64_t bytes : column.atMax) {
            table.number(bytes);
        }
        table.endRow();
    }
    table.finish();
}

} // namespace vitrine::profiler

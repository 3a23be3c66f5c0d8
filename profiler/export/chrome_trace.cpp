// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/export/chrome_trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/units.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/export/export_names.h"
#include "profiler/gpu/device_work.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/token_facet.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

constexpr int kProcess = 1;
constexpr int kDeviceProcess = 2;
constexpr int kBatchProcess = 3;
constexpr int kScopeTrack = 1; // and the following, should scopes overlap without nesting
constexpr int kTokenTrack = 90;
constexpr int kGapTrack = 91;
constexpr int kSpanTrack = 100;
constexpr std::size_t kTraceFlushBytes = 1 << 16;
constexpr std::size_t kStopEvery = 4096;

std::string jsonText(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string micros(TimeNs time) {
    return fmt::format("{}.{:03}", time / 1000, time % 1000);
}

/// JSON has no infinities; a counter that holds one is left out by its caller.
std::string number(double value) {
    return fmt::format("{}", value);
}

/// Whether a lane shows what a GPU did.
bool ofDevice(std::string_view lane) {
    return std::ranges::any_of(std::array{WorkKind::Kernel, WorkKind::Copy, WorkKind::Memset, WorkKind::Graph},
                               [lane](WorkKind kind) { return laneName(kind) == lane; });
}

/// Gives slices that overlap without nesting tracks of their own: a track may hold only nested ones.
class Tracks {
public:
    explicit Tracks(int first) : first_(first) {}

    /// Slices come by begin.
    int place(TimeNs begin, TimeNs end) {
        for (std::size_t track = 0;; ++track) {
            if (track == open_.size()) {
                open_.emplace_back();
            }
            std::vector<TimeNs>& ends = open_[track];
            while (!ends.empty() && ends.back() <= begin) {
                ends.pop_back();
            }
            if (ends.empty() || ends.back() >= end) {
                ends.push_back(end);
                return first_ + static_cast<int>(track);
            }
        }
    }
    std::size_t count() const { return open_.size(); }

private:
    int first_;
    std::vector<std::vector<TimeNs>> open_; ///< ends of the slices that are open on each track
};

class Writer {
public:
    Writer(const RunTimeline& timeline, const ChromeTraceOptions& options, std::ostream& out)
        : timeline_(timeline), options_(options), out_(out) {}

    void write() {
        text_ = fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"program\":\"Vitrine\",\"run\":{},"
                            "\"time_base\":\"{}\"}},\"traceEvents\":[\n",
                            jsonText(options_.runName), timeBaseName(options_.timeBase));
        name("process_name", kProcess, 0,
             fmt::format("{} ({} time)", options_.runName.empty() ? "run" : options_.runName,
                         timeBaseName(options_.timeBase)));
        scopes();
        spans();
        memory();
        hostMemory();
        counters();
        tokens();
        gaps();
        batch();
        failures();
        if (options_.allocations) {
            allocations();
        }
        text_ += "\n]}\n";
        flush();
    }

private:
    void flush() {
        out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
        text_.clear();
    }

    template <class... Args> void event(fmt::format_string<Args...> format, Args&&... args) {
        text_ += first_ ? "" : ",\n";
        first_ = false;
        fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
        if (text_.size() > kTraceFlushBytes) {
            flush();
        }
        if (++events_ % kStopEvery == 0) {
            base::throwIfStopped(options_.stop);
        }
    }

    void name(std::string_view what, int process, int track, std::string_view text) {
        event(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process, track,
              jsonText(text));
    }

    void scopes() {
        Tracks tracks(kScopeTrack);
        for (const ScopeRow& scope : timeline_.scopes().all()) {
            const TimeNs end = scope.end < 0 ? timeline_.end() : std::max(scope.begin, scope.end);
            event(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"id":{},"tokens":{},)"
                  R"("bytes":{},"flops":{},"open":{}}}}})",
                  jsonText(scopeName(timeline_, scope)), scopeKindName(scope.kind), kProcess,
                  tracks.place(scope.begin, end), micros(scope.begin), micros(end - scope.begin), scope.id,
                  scope.tokens, scope.bytes, scope.flops, scope.end < 0);
        }
        for (std::size_t track = 0; track < tracks.count(); ++track) {
            name("thread_name", kProcess, kScopeTrack + static_cast<int>(track),
                 track == 0 ? "Scopes" : fmt::format("Scopes {}", track + 1));
        }
    }

    void spans() {
        std::map<std::uint32_t, std::vector<const base::SpanEvent*>> lanes;
        for (const base::SpanEvent& span : timeline_.kernels().spans()) {
            lanes[span.lane.value].push_back(&span);
        }
        int next = kSpanTrack;
        bool device = false;
        for (const auto& [lane, spans] : lanes) {
            const std::string_view text = timeline_.text(lane);
            const int process = ofDevice(text) ? kDeviceProcess : kProcess;
            device = device || process == kDeviceProcess;
            Tracks tracks(next);
            for (const base::SpanEvent* span : spans) {
                const TimeNs length = std::max<TimeNs>(0, span->end - span->begin);
                event(R"({{"ph":"X","name":{},"cat":"span","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"bytes":{},)"
                      R"("flops":{},"scope":{}}}}})",
                      jsonText(timeline_.text(span->name.value)), process,
                      tracks.place(span->begin, span->begin + length), micros(span->begin), micros(length), span->bytes,
                      span->flops, span->scope.value);
            }
            for (std::size_t track = 0; track < tracks.count(); ++track) {
                name("thread_name", process, next + static_cast<int>(track),
                     track == 0 ? std::string(text) : fmt::format("{} {}", text, track + 1));
            }
            next += static_cast<int>(std::max<std::size_t>(1, tracks.count()));
        }
        if (device) {
            name("process_name", kDeviceProcess, 0, "GPU");
        }
    }

    void split(std::string_view title, TimeNs time, const base::CategoryBytes& bytes) {
        std::string args;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            fmt::format_to(std::back_inserter(args), "{}\"{}\":{}", i == 0 ? "" : ",",
                           base::categoryName(static_cast<base::MemoryCategory>(i)), bytes[i]);
        }
        event(R"({{"ph":"C","name":"{}","pid":{},"tid":0,"ts":{},"args":{{{}}}}})", title, kProcess, micros(time),
              args);
    }

    void memory() {
        // Each share of the events shows its peak and then its end, so that a peak that lasts no time is still there.
        const std::uint64_t total = timeline_.memory().events();
        const auto shares = std::min<std::uint64_t>(total, std::max<std::size_t>(1, options_.memorySamples / 2));
        std::uint64_t low = 0;
        for (std::uint64_t share = 1; share <= shares; ++share) {
            const auto high = static_cast<std::uint64_t>(static_cast<unsigned __int128>(total) * share / shares);
            const MemoryColumn column = timeline_.memory().queryEvents(low, high, 1).front();
            split("memory", column.maxTime, column.atMax);
            if (high - low > 1) {
                split("memory", timeline_.memory().eventTime(high - 1), timeline_.memory().atEvent(high));
            }
            low = high;
        }
    }

    void hostMemory() {
        constexpr int kColumns = 4096;
        const std::vector<MemoryColumn> columns =
            timeline_.memory().hostQuery(timeline_.begin(), timeline_.end(), kColumns);
        base::CategoryBytes before{};
        for (const MemoryColumn& column : columns) {
            if (column.atMax != before) {
                split("host memory", column.maxTime, column.atMax);
                before = column.atMax;
            }
        }
    }

    void counters() {
        for (const std::string& counter : timeline_.counters().names()) {
            for (const auto& [time, value] : timeline_.counters().samples(counter)) {
                if (std::isfinite(value)) {
                    event(R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{"value":{}}}}})", jsonText(counter),
                          kProcess, micros(time), number(value));
                }
            }
        }
    }

    void tokens() {
        if (!timeline_.tokens().all().empty()) {
            name("thread_name", kProcess, kTokenTrack, "Tokens");
        }
        for (const base::TokenEvent& token : timeline_.tokens().all()) {
            event(
                R"({{"ph":"i","s":"t","name":"token {}","cat":"token","pid":{},"tid":{},"ts":{},"args":{{"request":{},)"
                R"("position":{},"logprob":{}}}}})",
                token.token, kProcess, kTokenTrack, micros(token.time), token.request, token.position,
                std::isfinite(token.logprob) ? number(static_cast<double>(token.logprob)) : "null");
        }
    }

    void gaps() {
        if (!timeline_.gaps().all().empty()) {
            name("thread_name", kProcess, kGapTrack, "Lost records");
        }
        for (const base::GapEvent& gap : timeline_.gaps().all()) {
            event(R"({{"ph":"X","name":"{} records lost","cat":"gap","pid":{},"tid":{},"ts":{},"dur":{},"args":{{)"
                  R"("records":{},"memory_records":{}}}}})",
                  gap.records, kProcess, kGapTrack, micros(gap.begin), micros(gap.end - gap.begin), gap.records,
                  gap.memoryRecords);
        }
    }

    void batch() {
        if (timeline_.requests().steps().empty()) {
            return;
        }
        name("process_name", kBatchProcess, 0, "Batch");
        std::set<std::int32_t> slots;
        for (const base::SlotSpanEvent& span : timeline_.requests().slotSpans()) {
            slots.insert(span.slot);
            if (span.state != base::SlotState::Idle) {
                const TimeNs length = std::max<TimeNs>(0, span.end - span.begin);
                event(R"({{"ph":"X","name":"{} {}","cat":"slot","pid":{},"tid":{},"ts":{},"dur":{},"args":{{)"
                      R"("request":{},"first_step":{},"steps":{},"tokens":{},"padding":{}}}}})",
                      slotStateName(span.state), span.request, kBatchProcess, span.slot, micros(span.begin),
                      micros(length), span.request, span.firstStep, span.steps, span.tokens, span.padding);
            }
        }
        for (const std::int32_t slot : slots) {
            name("thread_name", kBatchProcess, slot, fmt::format("Slot {}", slot));
        }
        for (const base::BatchStepEvent& step : timeline_.requests().steps()) {
            event(R"({{"ph":"C","name":"requests","pid":{},"tid":0,"ts":{},"args":{{"queued":{},"running":{},)"
                  R"("preempted":{}}}}})",
                  kBatchProcess, micros(step.begin), step.queued, step.running, step.preempted);
            event(R"({{"ph":"C","name":"pages","pid":{},"tid":0,"ts":{},"args":{{"used":{},"cached":{},"free":{}}}}})",
                  kBatchProcess, micros(step.begin), step.usedPages, step.cachedPages, step.freePages);
        }
    }

    void failures() {
        for (const base::OutOfMemoryEvent& failure : timeline_.memory().outOfMemory()) {
            const std::string title = fmt::format("Out of memory: {} for {}", base::formatBytes(failure.requested),
                                                  timeline_.text(failure.name.value));
            event(R"({{"ph":"i","s":"g","name":{},"cat":"oom","pid":{},"tid":{},"ts":{},"args":{{"requested":{},)"
                  R"("budget":{},"held":{},"largest_free":{},"scope":{}}}}})",
                  jsonText(title), kProcess, kScopeTrack, micros(failure.time), failure.requested, failure.budget,
                  failure.reserved, failure.largestFree, jsonText(timeline_.scopes().path(failure.scope.value)));
        }
    }

    void allocations() {
        for (const AllocationRow& row : timeline_.memory().allocations()) {
            const std::string title = jsonText(timeline_.text(row.name));
            const std::string format =
                row.format == 0 ? std::string() : fmt::format(R"(,"format":{})", jsonText(timeline_.text(row.format)));
            event(
                R"({{"ph":"b","cat":"allocation","name":{},"id":"0x{:x}","pid":{},"tid":0,"ts":{},"args":{{"bytes":{},)"
                R"("category":"{}","address":"0x{:x}"{}}}}})",
                title, row.id, kProcess, micros(row.born), row.bytes, base::categoryName(row.category), row.address,
                format);
            event(R"({{"ph":"e","cat":"allocation","name":{},"id":"0x{:x}","pid":{},"tid":0,"ts":{}}})", title, row.id,
                  kProcess, micros(row.freed < 0 ? timeline_.end() : row.freed));
        }
    }

    const RunTimeline& timeline_;
    const ChromeTraceOptions& options_;
    std::ostream& out_;
    std::string text_;
    bool first_ = true;
    std::size_t events_ = 0;
};

} // namespace

std::string_view timeBaseName(base::TimeBase timeBase) {
    return timeBase == base::TimeBase::Virtual ? "virtual" : "monotonic";
}

void writeChromeTrace(const RunTimeline& timeline, const ChromeTraceOptions& options, std::ostream& out) {
    Writer(timeline, options, out).write();
}

} // namespace vitrine::profiler

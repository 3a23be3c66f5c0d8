// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs for tests of views: events in seconds and bytes go through the program's own recorder and timeline.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "sessions/session_file.h"

namespace vitrine::test {

inline base::TimeNs ns(double seconds) {
    return static_cast<base::TimeNs>(std::llround(seconds * 1e9));
}

class RecordedRun {
public:
    std::uint64_t scope(base::ScopeKind kind, const std::string& name, double begin, double end,
                        std::uint64_t parent = 0, std::int32_t index = -1, std::uint64_t bytes = 0,
                        std::uint64_t flops = 0) {
        const std::uint64_t id = ++ids_;
        recorder_.record(base::ScopeBeginEvent{ns(begin), {id}, {parent}, kind, recorder_.intern(name), index, 0});
        recorder_.record(base::ScopeEndEvent{ns(end), {id}, bytes, flops});
        return id;
    }

    /// freed < 0: alive at the end.
    void alloc(base::MemoryCategory category, const std::string& name, double bytes, double born, double freed,
               std::uint64_t scope = 0, const std::string& format = {}) {
        base::AllocationEvent event;
        event.time = ns(born);
        event.id = ++ids_;
        event.address = next_;
        event.bytes = static_cast<std::uint64_t>(std::llround(bytes));
        event.scope.value = scope;
        event.name = recorder_.intern(name);
        event.category = category;
        event.format = format.empty() ? base::StringId{} : recorder_.intern(format);
        next_ += event.bytes + 512;
        recorder_.record(event);
        if (freed >= 0) {
            recorder_.record(base::FreeEvent{ns(freed), event.id});
        }
    }

    void counter(const std::string& name, double time, double value) {
        recorder_.record(base::CounterEvent{ns(time), recorder_.intern(name), value});
    }

    void span(const std::string& lane, const std::string& name, double begin, double end, double bytes,
              std::uint64_t scope = 0) {
        base::SpanEvent event;
        event.begin = ns(begin);
        event.end = ns(end);
        event.lane = recorder_.intern(lane);
        event.name = recorder_.intern(name);
        event.bytes = static_cast<std::uint64_t>(bytes);
        event.scope.value = scope;
        recorder_.record(event);
    }

    /// An event as the engine reports it.
    void record(const base::TraceEvent& event) { recorder_.record(event); }
    base::StringId word(const std::string& text) { return recorder_.intern(text); }

    std::shared_ptr<const profiler::RunTimeline> timeline() {
        profiler::RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : recorder_.finish()) {
            builder.add(chunk);
        }
        return builder.snapshot();
    }

    /// What was recorded since the last call; the run goes on.
    std::vector<base::ColumnChunk> drain() { return recorder_.drain(); }

    /// What was recorded so far; the run goes on.
    std::shared_ptr<const profiler::RunTimeline> timelineSoFar() {
        for (const base::ColumnChunk& chunk : drain()) {
            soFar_.add(chunk);
        }
        return soFar_.snapshot();
    }

private:
    profiler::Recorder recorder_;
    profiler::RunTimelineBuilder soFar_;
    std::uint64_t ids_ = 0;
    std::uint64_t next_ = 1 << 20;
};

inline sessions::RunInfo runInfo(sessions::RunId id, const std::string& workload, const std::string& metricsJson,
                                 const std::string& specJson = "{}") {
    sessions::RunInfo run;
    run.id = id;
    run.name = workload + " " + std::to_string(id);
    run.workload = workload;
    run.specJson = specJson;
    run.environmentJson = "{}";
    run.metricsJson = metricsJson;
    run.status = sessions::RunStatus::Done;
    return run;
}

} // namespace vitrine::test

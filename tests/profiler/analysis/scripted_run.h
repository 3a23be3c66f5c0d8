// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A small run written line by line.

#include <memory>
#include <string_view>

#include "base/trace.h"
#include "kernels/core/dtype.h"
#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "tests/bytes.h"

namespace vitrine::profiler::testing {

using test::kGiB;
using test::kMiB;

class ScriptedRun {
public:
    base::TimeNs time = 0;

    std::uint64_t begin(base::ScopeKind kind, std::string_view name, std::int32_t index = -1, std::int64_t tokens = 0) {
        const std::uint64_t id = nextId_++;
        recorder_.record(base::ScopeBeginEvent{
            time, {id}, {open_.empty() ? 0 : open_.back()}, kind, recorder_.intern(name), index, tokens});
        open_.push_back(id);
        return id;
    }
    void end() {
        recorder_.record(base::ScopeEndEvent{time, {open_.back()}, 0, 0});
        open_.pop_back();
    }
    std::uint64_t allocate(std::string_view name, base::MemoryCategory category, std::uint64_t bytes,
                           kernels::DType dtype = kernels::DType::BF16, std::string_view format = {}) {
        base::AllocationEvent event;
        event.time = time;
        event.id = nextId_++;
        event.address = address_;
        event.bytes = bytes;
        event.scope.value = open_.empty() ? 0 : open_.back();
        event.name = recorder_.intern(name);
        event.category = category;
        event.dtype = static_cast<std::uint8_t>(dtype);
        event.format = format.empty() ? base::StringId{} : recorder_.intern(format);
        recorder_.record(event);
        address_ += bytes;
        return event.id;
    }
    void free(std::uint64_t id) { recorder_.record(base::FreeEvent{time, id}); }
    void counter(std::string_view name, double value) {
        recorder_.record(base::CounterEvent{time, recorder_.intern(name), value});
    }
    void span(std::string_view lane, std::string_view name, base::TimeNs first, base::TimeNs last,
              std::uint64_t bytes) {
        recorder_.record(base::SpanEvent{first, last, recorder_.intern(lane), recorder_.intern(name), {}, bytes, 0});
    }
    void outOfMemory(std::string_view name, base::MemoryCategory category, std::uint64_t requested,
                     std::uint64_t budget, std::uint64_t held, std::uint64_t largestFree) {
        recorder_.record(base::OutOfMemoryEvent{time,
                                                requested,
                                                budget,
                                                held,
                                                largestFree,
                                                {open_.empty() ? 0 : open_.back()},
                                                recorder_.intern(name),
                                                category});
    }
    void record(const base::TraceEvent& event) { recorder_.record(event); }
    base::StringId intern(std::string_view text) { return recorder_.intern(text); }

    std::shared_ptr<const RunTimeline> timeline() {
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : recorder_.finish()) {
            builder.add(chunk);
        }
        return builder.snapshot();
    }

private:
    Recorder recorder_;
    std::uint64_t nextId_ = 1;
    std::uint64_t address_ = 4096;
    std::vector<std::uint64_t> open_;
};

} // namespace vitrine::profiler::testing

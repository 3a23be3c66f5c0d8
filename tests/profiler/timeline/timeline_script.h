// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A run whose events come in any order and in seconds: what was reported goes through the recorder and the builder, as
// that of a real run.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "tests/bytes.h"

namespace vitrine::test {

inline base::TimeNs seconds(double s) {
    return static_cast<base::TimeNs>(std::llround(s * 1e9));
}

class TimelineScript {
public:
    std::uint32_t intern(const std::string& text) {
        const auto known = std::find(texts_.begin(), texts_.end(), text);
        if (known != texts_.end()) {
            return static_cast<std::uint32_t>(known - texts_.begin());
        }
        texts_.push_back(text);
        return static_cast<std::uint32_t>(texts_.size() - 1);
    }

    /// `end` below 0: open at the end. Returns its id: 1 for the first.
    std::uint64_t addScope(base::ScopeKind kind, const std::string& name, double begin, double end,
                           std::uint64_t parent = 0, std::int32_t index = -1, std::int64_t tokens = 0) {
        const std::uint64_t id = scopes_.size() + 1;
        base::ScopeBeginEvent event{seconds(begin), {id}, {parent}, kind, {intern(name)}, index, tokens};
        scopes_.push_back({event, end < 0 ? std::nullopt : std::optional(seconds(end))});
        return id;
    }

    /// `freed` below 0: alive at the end. Blocks get the lowest addresses that are free; untracked memory, which has no
    /// address in a real run either, gets none. Returns its id: 1 for the first.
    std::uint64_t alloc(base::MemoryCategory category, const std::string& name, double bytes, double born, double freed,
                        std::uint64_t scope = 0, const std::vector<std::int64_t>& shape = {}) {
        Block block;
        base::AllocationEvent& event = block.event;
        event.time = seconds(born);
        event.id = blocks_.size() + 1;
        event.bytes = static_cast<std::uint64_t>(std::llround(bytes));
        event.scope.value = scope;
        event.name.value = intern(name);
        event.category = category;
        event.dtype = 1;
        event.dimensions = static_cast<std::uint8_t>(std::min<std::size_t>(shape.size(), base::kMaxTraceDimensions));
        std::copy_n(shape.begin(), event.dimensions, event.shape.begin());
        block.freed = freed < 0 ? std::nullopt : std::optional(seconds(freed));
        blocks_.push_back(block);
        return event.id;
    }

    void addCounter(const std::string& name, double time, double value) {
        events_.emplace_back(base::CounterEvent{seconds(time), {intern(name)}, value});
    }
    void addSpan(const std::string& lane, const std::string& name, double begin, double end, std::uint64_t bytes) {
        events_.emplace_back(
            base::SpanEvent{seconds(begin), seconds(end), {intern(lane)}, {intern(name)}, {}, bytes, 0});
    }
    /// Any other event, in the order in which they are added.
    void add(const base::TraceEvent& event) { events_.push_back(event); }
    /// The run goes on until then, though nothing more happens.
    void finish(double end) { end_ = seconds(end); }

    /// Of what was reported so far.
    std::shared_ptr<const profiler::RunTimeline> timeline() const {
        profiler::Recorder recorder;
        for (const std::string& text : texts_) {
            recorder.intern(text); // in the order of their ids
        }
        for (const Scope& scope : scopes_) {
            recorder.record(scope.begin);
            if (scope.end) {
                recorder.record(base::ScopeEndEvent{*scope.end, scope.begin.id, 0, 0});
            }
        }
        for (const base::TraceEvent& event : memoryEvents()) {
            recorder.record(event);
        }
        for (const base::TraceEvent& event : events_) {
            recorder.record(event);
        }
        if (end_ > 0) {
            recorder.record(base::KvPageEvent{.time = end_ - 1});
        }
        profiler::RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : recorder.finish()) {
            builder.add(chunk);
        }
        return builder.snapshot();
    }

private:
    struct Scope {
        base::ScopeBeginEvent begin;
        std::optional<base::TimeNs> end;
    };
    struct Block {
        base::AllocationEvent event;
        std::optional<base::TimeNs> freed;
    };

    /// Births and deaths by time, at one instant deaths first.
    std::vector<base::TraceEvent> memoryEvents() const {
        std::vector<Block> blocks = blocks_;
        std::stable_sort(blocks.begin(), blocks.end(),
                         [](const Block& a, const Block& b) { return a.event.time < b.event.time; });
        placeAddresses(blocks);
        std::multimap<std::pair<base::TimeNs, bool>, base::TraceEvent> ordered; // by time, then births after deaths
        for (const Block& block : blocks) {
            ordered.emplace(std::pair(block.event.time, true), block.event);
            if (block.freed) {
                ordered.emplace(std::pair(*block.freed, false), base::FreeEvent{*block.freed, block.event.id});
            }
        }
        std::vector<base::TraceEvent> events;
        for (const auto& [place, event] : ordered) {
            events.push_back(event);
        }
        return events;
    }

    static void placeAddresses(std::vector<Block>& blocks) {
        std::vector<const Block*> live;
        for (Block& block : blocks) {
            if (block.event.category == base::MemoryCategory::Untracked) {
                continue;
            }
            std::erase_if(live, [&](const Block* other) { return other->freed && *other->freed <= block.event.time; });
            std::sort(live.begin(), live.end(),
                      [](const Block* a, const Block* b) { return a->event.address < b->event.address; });
            std::uint64_t place = 0;
            for (const Block* other : live) {
                if (other->event.address >= place && other->event.address - place >= block.event.bytes) {
                    break;
                }
                place = std::max(place, other->event.address + other->event.bytes);
            }
            block.event.address = place;
            live.push_back(&block);
        }
    }

    base::TimeNs end_ = 0;
    std::vector<std::string> texts_{""};
    std::vector<Scope> scopes_;
    std::vector<Block> blocks_;
    std::vector<base::TraceEvent> events_;
};

} // namespace vitrine::test

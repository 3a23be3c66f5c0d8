// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/memory_timeline.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "profiler/record/streams.h"
#include "profiler/timeline/history.h"
#include "profiler/timeline/scope_store.h"
#include "profiler/timeline/stored_pyramid.h"
#include "profiler/timeline/timeline_snapshot.h"

namespace vitrine::profiler {

using base::TimeNs;

struct MemoryTimelineBuilder::State {
    MemoryHistory history;
    ScopeStore scopes;
    std::shared_ptr<const std::unordered_map<std::uint32_t, std::string>> strings =
        std::make_shared<const std::unordered_map<std::uint32_t, std::string>>();
    std::vector<EventBatch::Text> newStrings;
    std::map<std::uint32_t, SharedVector<CounterSample>> counters;
    SharedVector<base::SpanEvent> spans;
    SharedVector<base::TokenEvent> tokens;
    SharedVector<base::BatchStepEvent> batchSteps;
    SharedVector<base::SlotSpanEvent> slotSpans;
    SharedVector<base::RequestEvent> requests;
    SharedVector<base::KvPageEvent> kvPages;
    SharedVector<base::GapEvent> gaps;
    SharedVector<base::OutOfMemoryEvent> outOfMemory;
    SharedVector<FailurePlace> failures;
    std::vector<std::vector<PyramidNode>> stored{static_cast<std::size_t>(kMaxPyramidLevels)};
    std::shared_ptr<const StoredPyramid> chosen; ///< of `stored`; null when that changed
    TimeNs latest = -1;
    EventBatch batch;

    void see(TimeNs time) { latest = std::max(latest, time); }
    void addStored(const base::ColumnChunk& chunk, int level);
    void addBatch();
    void addServing();
    void addSpan(const base::SpanEvent& event);
    void addReplays();
    void addStrings();
    std::shared_ptr<const MemoryTimeline> snapshot(bool preview);
};

void MemoryTimelineBuilder::State::addStored(const base::ColumnChunk& chunk, int level) {
    const std::vector<PyramidNode> nodes = decodePyramid(chunk);
    auto& known = stored[static_cast<std::size_t>(level)];
    known.insert(known.end(), nodes.begin(), nodes.end());
    chosen.reset();
    for (const PyramidNode& node : nodes) {
        see(node.timeEnd);
    }
}

void MemoryTimelineBuilder::State::addSpan(const base::SpanEvent& event) {
    spans.insertOrdered(event, [](const base::SpanEvent& span) { return span.begin; });
    see(event.end);
}

void MemoryTimelineBuilder::State::addBatch() {
    newStrings.insert(newStrings.end(), batch.strings.begin(), batch.strings.end());
    history.addTemplates(batch.templates);
    history.addAllocations(batch.allocations);
    history.addFrees(batch.frees);
    history.addReplays(batch.replays);
    scopes.addBegins(batch.scopeBegins);
    scopes.addEnds(batch.scopeEnds);
    const auto byTime = [](const auto& event) { return event.time; };
    for (const auto& event : batch.counters) {
        counters[event.name.value].insertOrdered({event.time, event.value}, byTime);
        see(event.time);
    }
    for (const auto& event : batch.tokens) {
        tokens.insertOrdered(event, byTime);
        see(event.time);
    }
    for (const auto& [order, event] : batch.outOfMemory) {
        outOfMemory.insertOrdered(event, byTime);
        failures.insertOrdered({event.time, order}, byTime);
        see(event.time);
    }
    for (const auto& event : batch.spans) {
        addSpan(event);
    }
    addServing();
    for (const auto& event : batch.allocations) {
        see(event.event.time);
    }
    for (const auto& event : batch.frees) {
        see(event.event.time);
    }
    for (const auto& event : batch.replays) {
        see(event.event.end);
    }
    batch.clear();
}

void MemoryTimelineBuilder::State::addServing() {
    const auto byBegin = [](const auto& event) { return event.begin; };
    const auto byTime = [](const auto& event) { return event.time; };
    for (const auto& event : batch.batchSteps) {
        batchSteps.insertOrdered(event, byBegin);
        see(event.end);
    }
    for (const auto& event : batch.slotSpans) {
        slotSpans.insertOrdered(event, byBegin);
        see(event.end);
    }
    for (const auto& event : batch.requests) {
        requests.insertOrdered(event, byTime);
        see(event.time);
    }
    for (const auto& event : batch.kvPages) {
        kvPages.insertOrdered(event, byTime);
        see(event.time);
    }
    for (const auto& event : batch.gaps) {
        gaps.insertOrdered(event, byBegin);
        see(event.end);
    }
}

void MemoryTimelineBuilder::State::addReplays() {
    for (const std::uint32_t index : history.takeNewReplays()) {
        const ReplayInfo& replay = history.replay(index);
        const TemplateInfo& step = history.templateOf(replay);
        scopes.addReplay(index, replay, step);
        for (base::SpanEvent span : step.spans) {
            span.begin = expandTime(replay, step.duration, span.begin);
            span.end = expandTime(replay, step.duration, span.end);
            span.scope.value += replay.firstId;
            addSpan(span);
        }
    }
}

void MemoryTimelineBuilder::State::addStrings() {
    if (newStrings.empty()) {
        return;
    }
    auto all = std::make_shared<std::unordered_map<std::uint32_t, std::string>>(*strings);
    for (const EventBatch::Text& text : newStrings) {
        (*all)[text.id] = text.text;
    }
    strings = std::move(all);
    newStrings.clear();
}

std::shared_ptr<const MemoryTimeline> MemoryTimelineBuilder::State::snapshot(bool preview) {
    addStrings();
    addReplays();
    history.settle(preview);
    TimelineParts parts;
    parts.history = history.views();
    parts.scopes = scopes.views();
    parts.strings = strings;
    for (auto& [name, samples] : counters) {
        const auto text = strings->find(name);
        parts.counters.emplace(text == strings->end() ? std::string() : text->second, samples.view());
    }
    parts.spans = spans.view();
    parts.tokens = tokens.view();
    parts.batchSteps = batchSteps.view();
    parts.slotSpans = slotSpans.view();
    parts.requests = requests.view();
    parts.kvPages = kvPages.view();
    parts.gaps = gaps.view();
    parts.outOfMemory = outOfMemory.view();
    parts.failures = failures.view();
    if (!chosen) {
        chosen = std::make_shared<const StoredPyramid>(chooseLevel(stored));
    }
    if (storedEvents(*chosen) > history.events()) {
        parts.stored = chosen;
    }
    parts.end = std::max(latest, scopes.latest()) + 1;
    return std::make_shared<const TimelineSnapshot>(std::move(parts));
}

MemoryTimelineBuilder::MemoryTimelineBuilder() : state_(std::make_unique<State>()) {}
MemoryTimelineBuilder::~MemoryTimelineBuilder() = default;

void MemoryTimelineBuilder::add(const base::ColumnChunk& chunk) {
    if (const int level = pyramidLevel(chunk.stream); level >= 0) {
        state_->addStored(chunk, level);
        return;
    }
    try {
        if (decodeInto(chunk, state_->batch)) {
            state_->addBatch();
        }
    } catch (...) {
        state_->batch.clear();
        throw;
    }
}

std::shared_ptr<const MemoryTimeline> MemoryTimelineBuilder::snapshot() {
    return state_->snapshot(false);
}

std::shared_ptr<const MemoryTimeline> MemoryTimelineBuilder::preview() {
    return state_->snapshot(true);
}

} // namespace vitrine::profiler

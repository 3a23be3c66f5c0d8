// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/run_timeline_builder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "profiler/record/streams.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/memory_builder.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_fields.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

/// Leaves out what concerns other devices, but for records of memory, which have their own order.
void keepRank(EventBatch& batch, base::DeviceRank rank) {
    const auto ofOthers = [rank](const auto& event) { return event.device != rank; };
    std::erase_if(batch.scopeBegins, ofOthers);
    std::erase_if(batch.scopeEnds, ofOthers);
    std::erase_if(batch.spans, ofOthers);
    std::erase_if(batch.counters, ofOthers);
    EventStreams::each([&]<class Stream> {
        if constexpr (requires(typename Stream::Event event) { event.device; }) {
            std::erase_if(batch.of<typename Stream::Event>(), ofOthers);
        }
    });
}

} // namespace

struct RunTimelineBuilder::State {
    explicit State(base::DeviceRank deviceRank) : rank(deviceRank), memory(deviceRank) {}

    const base::DeviceRank rank;
    NameTable::Texts texts;
    bool newTexts = false;
    std::shared_ptr<const NameTable::Texts> sharedTexts = std::make_shared<const NameTable::Texts>();
    MemoryBuilder memory;
    ScopeStore scopes;
    std::map<std::uint32_t, SharedVector<CounterSample>> counters;
    TimeNs latestCounter = -1;
    OrderedEvents<base::TokenEvent> tokens;
    OrderedEvents<base::SpanEvent> kernels;
    EventStore events;
    EventBatch batch;

    void addBatch();
    void addReplays();
    TimeNs latest() const;
    CounterFacet::Samples counterSamples();
    std::shared_ptr<const RunTimeline> snapshot(bool preview);
};

void RunTimelineBuilder::State::addBatch() {
    for (const EventBatch::Text& text : batch.strings) {
        texts[text.id] = text.text;
        newTexts = true;
    }
    memory.add(batch);
    keepRank(batch, rank);
    scopes.addBegins(batch.scopeBegins);
    scopes.addEnds(batch.scopeEnds);
    for (const auto& event : batch.counters) {
        counters[event.name.value].insertOrdered({event.time, event.value},
                                                 [](const CounterSample& sample) { return sample.time; });
        latestCounter = std::max(latestCounter, event.time);
    }
    tokens.add(batch.tokens);
    kernels.add(batch.spans);
    events.add(batch);
    batch.clear();
}

/// Expands the steps whose templates are known by now.
void RunTimelineBuilder::State::addReplays() {
    MemoryHistory& history = memory.history();
    for (const std::uint32_t index : history.takeNewReplays()) {
        const ReplayInfo& replay = history.replay(index);
        const TemplateInfo& step = history.templateOf(replay);
        scopes.addReplay(index, replay, step);
        for (base::SpanEvent span : step.spans) {
            span.begin = expandTime(replay, step.duration, span.begin);
            span.end = expandTime(replay, step.duration, span.end);
            span.scope.value += replay.firstId;
            kernels.add({&span, 1});
        }
    }
}

TimeNs RunTimelineBuilder::State::latest() const {
    return std::max(
        {memory.latest(), scopes.latest(), latestCounter, tokens.latest(), kernels.latest(), events.latest()});
}

CounterFacet::Samples RunTimelineBuilder::State::counterSamples() {
    CounterFacet::Samples samples;
    for (auto& [name, vector] : counters) {
        const auto text = sharedTexts->find(name);
        samples.emplace(text == sharedTexts->end() ? std::string() : text->second, vector.view());
    }
    return samples;
}

std::shared_ptr<const RunTimeline> RunTimelineBuilder::State::snapshot(bool preview) {
    if (std::exchange(newTexts, false)) {
        sharedTexts = std::make_shared<const NameTable::Texts>(texts);
    }
    addReplays();
    const StoredEvents stored = events.view();
    const NameTable names(sharedTexts);
    MemoryParts parts = memory.parts(preview, latest() + 1, GapFacet(stored).memoryFrom());
    ScopeParts scopeParts{scopes.views(memory.history()), parts.history.events.replays(),
                          parts.history.events.templates(), names};
    return std::make_shared<const RunTimeline>(RunTimelineFields{names, std::move(parts), std::move(scopeParts),
                                                                 counterSamples(), TokenFacet(tokens.view()),
                                                                 KernelFacet(kernels.view()), stored});
}

RunTimelineBuilder::RunTimelineBuilder(base::DeviceRank rank) : state_(std::make_unique<State>(rank)) {}
RunTimelineBuilder::~RunTimelineBuilder() = default;

void RunTimelineBuilder::add(const base::ColumnChunk& chunk) {
    if (state_->memory.addPyramid(chunk)) {
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

std::shared_ptr<const RunTimeline> RunTimelineBuilder::snapshot() {
    return state_->snapshot(false);
}

std::shared_ptr<const RunTimeline> RunTimelineBuilder::preview() {
    return state_->snapshot(true);
}

} // namespace vitrine::profiler

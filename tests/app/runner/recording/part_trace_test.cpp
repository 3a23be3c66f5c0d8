// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/part_trace.h"

#include <gtest/gtest.h>

#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/page_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/token_facet.h"

namespace vitrine::app {
namespace {

using base::RequestChange;

std::shared_ptr<const profiler::RunTimeline> timelineOf(profiler::Recorder& recorder) {
    profiler::RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    return builder.snapshot();
}

base::AllocationEvent block(std::uint64_t id, base::TimeNs time, base::StringId name) {
    return {.time = time,
            .id = id,
            .address = id << 20,
            .bytes = 1000 * id,
            .name = name,
            .category = base::MemoryCategory::Weights};
}

TEST(PartTrace, APartBeginsWithWhatIsAliveAndCountsFromItsBeginning) {
    PartTrace trace;
    const base::StringId weights = trace.intern("weights");
    const base::StringId step = trace.intern("step arena");
    const base::StringId bytes = trace.intern("kv_bytes");
    trace.record(block(1, 10, weights));
    trace.record(block(2, 20, step));
    trace.record(base::ScopeBeginEvent{25, {7}, {}, base::ScopeKind::Phase, trace.intern("serve")});
    trace.record(base::CounterEvent{30, bytes, 5});
    trace.record(base::CounterEvent{40, bytes, 6});
    trace.record(base::FreeEvent{50, 2});
    trace.record(base::KvPageEvent{55, 0, 3, base::PageState::Used, 0, 1});
    trace.record(base::KvPageEvent{55, 0, 4, base::PageState::Used, 0, 1});
    trace.record(base::KvPageEvent{56, 0, 4, base::PageState::Free, -1, 0});
    for (const std::int32_t request : {0, 1, 2}) {
        trace.record(base::RequestEvent{60, request, RequestChange::Arrived, -1, -1, 9, {}});
    }
    trace.record(base::RequestEvent{61, 0, RequestChange::Admitted, 0, 0, 0, {}});
    trace.record(base::RequestEvent{61, 1, RequestChange::Admitted, 1, 0, 0, {}});
    trace.record(base::RequestEvent{70, 1, RequestChange::FirstToken, -1, 1, 1, {}});
    trace.record(base::RequestEvent{80, 0, RequestChange::Finished, -1, 2, 3, {}});
    base::BatchStepEvent batch;
    batch.begin = 60;
    batch.end = 90;
    batch.index = 41;
    trace.record(batch);

    const auto first = trace.recorder();
    trace.next();
    EXPECT_EQ(trace.origin().time, 90);
    EXPECT_EQ(trace.origin().step, 42);
    EXPECT_EQ(trace.origin().request, 1);
    EXPECT_EQ(trace.intern("weights"), weights) << "who knows a name goes on to use it";
    trace.record(base::FreeEvent{95, 1});
    trace.record(block(3, 100, trace.intern("later")));
    batch.index = 42;
    batch.begin = 85; // launched before the part began
    batch.end = 120;
    trace.record(batch);
    base::SlotSpanEvent span;
    span.begin = 80;
    span.end = 120;
    span.firstStep = 40;
    span.steps = 3;
    span.request = 1;
    trace.record(span);
    trace.record(base::TokenEvent{110, 2, 9, 5, 0});
    trace.record(base::RequestEvent{130, 1, RequestChange::Finished, -1, 42, 7, {}});
    trace.record(base::ScopeEndEvent{140, {7}});

    const auto before = timelineOf(*first);
    EXPECT_EQ(before->memory().allocations().size(), 2U);
    EXPECT_EQ(before->requests().steps().size(), 1U);
    EXPECT_EQ(before->requests().events().size(), 7U);

    const auto after = timelineOf(*trace.recorder());
    ASSERT_EQ(after->memory().allocations().size(), 2U) << "what was freed before is not reported again";
    EXPECT_EQ(after->memory().allocations()[0].born, 0);
    EXPECT_EQ(after->memory().allocations()[0].freed, 5);
    EXPECT_EQ(after->text(after->memory().allocations()[0].name), "weights");
    EXPECT_EQ(after->memory().allocations()[1].born, 10);
    EXPECT_EQ(after->text(after->memory().allocations()[1].name), "later");
    ASSERT_EQ(after->scopes().phases().size(), 1U);
    EXPECT_EQ(after->scopes().phases()[0].begin, 0);
    EXPECT_EQ(after->scopes().phases()[0].end, 50);
    EXPECT_EQ(after->counters().samples("kv_bytes"), (std::vector<std::pair<base::TimeNs, double>>{{0, 6}}));
    ASSERT_EQ(after->requests().steps().size(), 1U);
    EXPECT_EQ(after->requests().steps()[0].index, 0);
    EXPECT_EQ(after->requests().steps()[0].begin, 0);
    EXPECT_EQ(after->requests().steps()[0].end, 30);
    ASSERT_EQ(after->requests().slotSpans().size(), 1U);
    EXPECT_EQ(after->requests().slotSpans()[0].firstStep, 0);
    EXPECT_EQ(after->requests().slotSpans()[0].steps, 1);
    EXPECT_EQ(after->requests().slotSpans()[0].request, 0);
    ASSERT_EQ(after->pages().all().size(), 1U);
    EXPECT_EQ(after->pages().all()[0].page, 3);
    ASSERT_EQ(after->tokens().all().size(), 1U);
    EXPECT_EQ(after->tokens().all()[0].request, 1);
    const auto requests = after->requests().events();
    ASSERT_EQ(requests.size(), 5U);
    EXPECT_EQ(requests[0].phase, RequestChange::Arrived);
    EXPECT_EQ(requests[0].request, 0);
    EXPECT_EQ(requests[0].tokens, 9);
    EXPECT_EQ(requests[0].time, 60 - 90);
    EXPECT_EQ(requests[1].phase, RequestChange::Arrived);
    EXPECT_EQ(requests[1].request, 1);
    EXPECT_EQ(requests[2].phase, RequestChange::Admitted);
    EXPECT_EQ(requests[2].slot, 1);
    EXPECT_EQ(requests[2].step, -1) << "no step of this part";
    EXPECT_EQ(requests[2].time, 61 - 90);
    EXPECT_EQ(requests[3].phase, RequestChange::FirstToken);
    EXPECT_EQ(requests[3].time, 70 - 90);
    EXPECT_EQ(requests[3].tokens, 1);
    EXPECT_EQ(requests[4].phase, RequestChange::Finished);
    EXPECT_EQ(requests[4].time, 40);
}

TEST(PartTrace, ARequestKeepsItsTimesOverAsManyCutsAsItLives) {
    PartTrace trace;
    const base::StringId swap = trace.intern("swap");
    const auto cutAt = [&](base::TimeNs time, std::int64_t step) {
        base::BatchStepEvent batch;
        batch.begin = batch.end = time;
        batch.index = step;
        trace.record(batch);
        trace.next();
    };
    const auto changesOf = [](PartTrace& parts) {
        std::vector<std::pair<RequestChange, base::TimeNs>> out;
        const auto timeline = timelineOf(*parts.recorder());
        for (const base::RequestEvent& event : timeline->requests().events()) {
            out.emplace_back(event.phase, event.time);
        }
        return out;
    };
    using Changes = std::vector<std::pair<RequestChange, base::TimeNs>>;
    trace.record(base::RequestEvent{10, 0, RequestChange::Arrived, -1, -1, 9, {}});
    cutAt(100, 0);
    trace.record(base::RequestEvent{110, 0, RequestChange::Admitted, 2, 1, 0, {}, 3});
    cutAt(200, 1);
    trace.record(base::RequestEvent{210, 0, RequestChange::FirstToken, -1, 2, 1, {}});
    trace.record(base::RequestEvent{220, 0, RequestChange::Preempted, 2, 2, 3, swap});
    cutAt(300, 2);
    EXPECT_EQ(changesOf(trace), (Changes{{RequestChange::Arrived, -290},
                                         {RequestChange::Admitted, -190},
                                         {RequestChange::FirstToken, -90},
                                         {RequestChange::Preempted, -80}}));
    trace.record(base::RequestEvent{310, 0, RequestChange::Resumed, 1, 3, 11, {}, 5});
    cutAt(400, 3);
    const auto timeline = timelineOf(*trace.recorder());
    const auto requests = timeline->requests().events();
    ASSERT_EQ(requests.size(), 5U);
    EXPECT_EQ(requests[1].sequence, -1) << "its first pages may be another's by now";
    EXPECT_EQ(requests[4].phase, RequestChange::Resumed);
    EXPECT_EQ(requests[4].time, -90);
    EXPECT_EQ(requests[4].sequence, 5);
    cutAt(500, 4);
    trace.record(base::RequestEvent{510, 0, RequestChange::Finished, -1, 5, 20, {}});
    EXPECT_EQ(changesOf(trace), (Changes{{RequestChange::Arrived, -490},
                                         {RequestChange::Admitted, -390},
                                         {RequestChange::FirstToken, -290},
                                         {RequestChange::Preempted, -280},
                                         {RequestChange::Resumed, -190},
                                         {RequestChange::Finished, 10}}));
    cutAt(600, 5);
    EXPECT_TRUE(changesOf(trace).empty());
}

TEST(PartTrace, TemplatesAreKnownInEveryPart) {
    PartTrace trace;
    auto step = std::make_shared<base::StepTemplate>();
    step->id = 4;
    step->duration = 100;
    step->idCount = 2;
    base::AllocationEvent inside = block(1, 10, trace.intern("scratch"));
    step->events = {base::ScopeBeginEvent{0, {0}, {0}, base::ScopeKind::Step, trace.intern("decode"), -1, 1}, inside,
                    base::FreeEvent{20, 1}, base::ScopeEndEvent{100, {0}}};
    trace.record(base::StepTemplateEvent{step});
    trace.record(base::StepReplayedEvent{1000, 1200, 4, 50, {}, 8});
    base::BatchStepEvent batch;
    batch.end = 1200;
    batch.index = 8;
    trace.record(batch);
    trace.next();
    trace.record(base::StepReplayedEvent{1300, 1500, 4, 60, {}, 9});
    const auto after = timelineOf(*trace.recorder());
    ASSERT_EQ(after->scopes().steps().size(), 1U);
    EXPECT_EQ(after->scopes().steps()[0].begin, 100);
    EXPECT_EQ(after->scopes().steps()[0].index, 0);
    ASSERT_EQ(after->memory().allocations().size(), 1U);
    EXPECT_EQ(after->memory().allocations()[0].born, 120);
}

} // namespace
} // namespace vitrine::app

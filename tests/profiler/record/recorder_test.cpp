// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/recorder.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

#include "profiler/record/streams.h"
#include "profiler/timeline/memory_timeline.h"

namespace vitrine::profiler {
namespace {

TEST(Recorder, ThreadsRecordWhileOneDrains) {
    constexpr std::uint64_t kThreads = 4;
    constexpr std::uint64_t kBlocks = 3000;
    Recorder recorder;
    MemoryTimelineBuilder builder;
    std::atomic<std::uint64_t> running{kThreads};
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            const base::StringId name = recorder.intern("thread " + std::to_string(thread));
            for (std::uint64_t i = 0; i < kBlocks; ++i) {
                base::AllocationEvent event;
                event.time = static_cast<base::TimeNs>(i);
                event.id = 1 + thread * kBlocks + i;
                event.bytes = 8;
                event.name = name;
                recorder.record(event);
                if (i % 3 != 0) {
                    recorder.record(base::FreeEvent{static_cast<base::TimeNs>(i), event.id});
                }
            }
            --running;
        });
    }
    // Another thread reads snapshots while the builder goes on.
    std::shared_ptr<const MemoryTimeline> shown;
    std::thread reader;
    while (running > 0) {
        for (const base::ColumnChunk& chunk : recorder.drain()) {
            builder.add(chunk);
        }
        auto snapshot = builder.snapshot();
        if (reader.joinable()) {
            reader.join();
        }
        reader = std::thread([snapshot] {
            for (const MemoryColumn& column : snapshot->query(0, snapshot->end(), 50)) {
                EXPECT_LE(column.minTotal, column.maxTotal);
            }
            snapshot->shapes(0, snapshot->end(), 10, 10, true);
            snapshot->aliveAt(snapshot->end() / 2);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    if (reader.joinable()) {
        reader.join();
    }
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    EXPECT_EQ(recorder.lostRecords(), 0U);
    EXPECT_EQ(timeline->events(), recorder.events());
    EXPECT_EQ(timeline->allocations().size(), kThreads * kBlocks);
    EXPECT_EQ(timeline->aliveAt(timeline->end()).size(), kThreads * (kBlocks / 3));
    EXPECT_EQ(timeline->text(timeline->allocations()[0].name).substr(0, 7), "thread ");
}

TEST(Recorder, BoundsWhatWaitsAndCountsWhatItDrops) {
    Recorder recorder(RecorderOptions{.maxWaiting = 10});
    base::AllocationEvent event;
    for (std::uint64_t id = 1; id <= 25; ++id) {
        event.id = id;
        event.bytes = 100;
        recorder.record(event);
    }
    EXPECT_EQ(recorder.events(), 10U);
    EXPECT_EQ(recorder.lostRecords(), 15U);
    // Ends have room of their own, so that what was recorded does not stay alive for ever.
    for (std::uint64_t id = 1; id <= 10; ++id) {
        recorder.record(base::FreeEvent{5, id});
    }
    EXPECT_EQ(recorder.lostRecords(), 15U);
    recorder.record(base::FreeEvent{5, 11});
    EXPECT_EQ(recorder.lostRecords(), 16U);
    MemoryTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    EXPECT_EQ(timeline->events(), 20U);
    EXPECT_EQ(timeline->peak(0, 10).maxTotal, 1000U);
    EXPECT_TRUE(timeline->aliveAt(5).empty());
    // After a drain there is room again.
    recorder.record(event);
    EXPECT_EQ(recorder.events(), 21U);
}

TEST(Recorder, RefusesWhatNoReaderWouldTake) {
    Recorder recorder;
    base::AllocationEvent event;
    event.bytes = kMaxBlockBytes + 1;
    recorder.record(event);
    event.bytes = 10;
    event.address = UINT64_MAX - 5;
    recorder.record(event);
    event.address = 0;
    event.rank = base::kMaxTraceRank + 1;
    recorder.record(event);
    auto step = std::make_shared<base::StepTemplate>();
    step->events = {base::CounterEvent{}};
    recorder.record(base::StepTemplateEvent{step});
    recorder.record(base::StepTemplateEvent{nullptr});
    recorder.record(base::StepReplayedEvent{.begin = 5, .end = 4});
    EXPECT_EQ(recorder.lostRecords(), 6U);
    EXPECT_EQ(recorder.events(), 0U);
    EXPECT_TRUE(recorder.finish().empty());
}

TEST(Recorder, NamesAreEqualWhenTextsAre) {
    Recorder recorder;
    EXPECT_EQ(recorder.intern("").value, 0U);
    const base::StringId a = recorder.intern("a");
    EXPECT_EQ(recorder.intern("a"), a);
    EXPECT_NE(recorder.intern("b"), a);
    std::vector<base::ColumnChunk> chunks = recorder.drain();
    ASSERT_EQ(chunks.size(), 1U);
    EXPECT_EQ(chunks[0].stream, kStringsStream);
    EXPECT_EQ(chunks[0].rows, 2U);
    recorder.intern("a");
    EXPECT_TRUE(recorder.drain().empty());
}

TEST(Recorder, ScopesAndReplayedStepsAreExpanded) {
    Recorder recorder;
    const base::StringId decode = recorder.intern("decode");
    const base::StringId op = recorder.intern("ExpertMlp");
    recorder.record(base::ScopeBeginEvent{0, {1}, {0}, base::ScopeKind::Phase, decode, -1, 4});
    auto step = std::make_shared<base::StepTemplate>();
    step->duration = 100;
    step->idCount = 5;
    base::AllocationEvent block;
    block.time = 20;
    block.id = 4;
    block.bytes = 64;
    block.scope.value = 2;
    block.category = base::MemoryCategory::Workspace;
    step->events = {base::ScopeBeginEvent{0, {0}, {0}, base::ScopeKind::Step, decode, -1, 1},
                    base::ScopeBeginEvent{10, {1}, {0}, base::ScopeKind::Layer, decode, 11, 0},
                    base::ScopeBeginEvent{10, {2}, {1}, base::ScopeKind::Op, op, -1, 0},
                    block,
                    base::FreeEvent{40, 4},
                    base::SpanEvent{10, 50, decode, op, {2}, 5, 6},
                    base::ScopeEndEvent{50, {2}, 7, 8},
                    base::ScopeEndEvent{90, {1}, 0, 0},
                    base::ScopeEndEvent{100, {0}, 0, 0}};
    recorder.record(base::StepTemplateEvent{step});
    recorder.record(base::StepReplayedEvent{1000, 1200, 0, 100, {1}, 3});
    recorder.record(base::StepReplayedEvent{2000, 2050, 0, 105, {1}, 4});
    recorder.record(base::ScopeEndEvent{3000, {1}, 0, 0});
    MemoryTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    ASSERT_EQ(timeline->scopes().size(), 7U);
    ASSERT_EQ(timeline->allocations().size(), 2U);
    const AllocationRow second = timeline->allocations()[1];
    EXPECT_EQ(second.id, 109U);
    EXPECT_EQ(second.scope, 107U);
    EXPECT_EQ(second.born, 2010);
    EXPECT_EQ(second.freed, 2020);
    EXPECT_EQ(timeline->scopePath(second.scope), "decode / step 4 / layer 11 / ExpertMlp");
    const ScopeRow* const scope = timeline->scope(102);
    ASSERT_NE(scope, nullptr);
    EXPECT_EQ(scope->begin, 1020);
    EXPECT_EQ(scope->end, 1100);
    EXPECT_EQ(scope->bytes, 7U);
    EXPECT_EQ(scope->flops, 8U);
    EXPECT_EQ(timeline->scope(100)->parent, 1U);
    EXPECT_EQ(timeline->scope(100)->index, 3);
    EXPECT_EQ(timeline->scope(101)->parent, 100U);
    EXPECT_EQ(timeline->scope(1)->end, 3000);
    EXPECT_EQ(timeline->scope(104), nullptr);
    EXPECT_EQ(timeline->scope(99), nullptr);
    ASSERT_EQ(timeline->spans().size(), 2U);
    EXPECT_EQ(timeline->spans()[1].begin, 2005);
    EXPECT_EQ(timeline->spans()[1].end, 2025);
    EXPECT_EQ(timeline->spans()[1].scope.value, 107U);
    base::TimeNs before = 0;
    std::vector<std::uint64_t> steps, phases, kept;
    for (const ScopeRow& row : timeline->scopes()) {
        EXPECT_LE(before, row.begin);
        before = row.begin;
        if (row.kind == base::ScopeKind::Step || row.kind == base::ScopeKind::Phase) {
            (row.kind == base::ScopeKind::Step ? steps : phases).push_back(row.id);
        }
    }
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{100, 105}));
    for (const ScopeRow& row : timeline->steps()) {
        kept.push_back(row.id);
    }
    EXPECT_EQ(kept, steps);
    EXPECT_EQ(phases.size(), 1U);
    ASSERT_EQ(timeline->phases().size(), 1U);
    EXPECT_EQ(timeline->phases()[0].id, phases[0]);
}

} // namespace
} // namespace vitrine::profiler

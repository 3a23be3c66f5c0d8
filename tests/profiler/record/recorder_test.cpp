// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/recorder.h"

#include <atomic>
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

#include "profiler/record/streams.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {
namespace {

/// A thread that drains a recorder which waits for it, whenever it is asked to.
class Drainer {
public:
    explicit Drainer(std::size_t maxWaiting)
        : recorder({.maxWaiting = maxWaiting, .drainSoon = [this] { ask(); }}), thread_([this] { loop(); }) {}
    ~Drainer() { stop(); }
    Drainer(const Drainer&) = delete; // a thread holds its address
    Drainer& operator=(const Drainer&) = delete;

    /// Ends the thread without a last drain.
    void stop() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    std::shared_ptr<const RunTimeline> timeline() {
        stop();
        add(recorder.finish());
        return builder_.snapshot();
    }
    std::uint64_t largestDrain() const { return largestDrain_; }

    Recorder recorder;

private:
    void ask() {
        {
            const std::lock_guard lock(mutex_);
            asked_ = true;
        }
        wake_.notify_all();
    }
    void add(const std::vector<base::ColumnChunk>& chunks) {
        std::uint64_t rows = 0;
        for (const base::ColumnChunk& chunk : chunks) {
            rows += pyramidLevel(chunk.stream) < 0 ? chunk.rows : 0;
            builder_.add(chunk);
        }
        largestDrain_ = std::max(largestDrain_, rows);
    }
    void loop() {
        std::unique_lock lock(mutex_);
        while (!stopping_) {
            wake_.wait(lock, [this] { return stopping_ || asked_; });
            if (std::exchange(asked_, false)) {
                lock.unlock();
                add(recorder.drain());
                lock.lock();
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    bool asked_ = false, stopping_ = false;
    RunTimelineBuilder builder_;
    std::uint64_t largestDrain_ = 0;
    std::thread thread_;
};

base::AllocationEvent block(std::uint64_t id, base::TimeNs time) {
    base::AllocationEvent event;
    event.id = id;
    event.time = time;
    event.bytes = 100;
    return event;
}

TEST(Recorder, ProducersThatCanWaitLoseNothing) {
    constexpr std::uint64_t kThreads = 3, kBlocks = 5000, kMost = 64;
    Drainer drainer(kMost);
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::uint64_t i = 0; i < kBlocks; ++i) {
                drainer.recorder.record(block(1 + thread * kBlocks + i, static_cast<base::TimeNs>(i)));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const auto timeline = drainer.timeline();
    EXPECT_EQ(drainer.recorder.lostRecords(), 0U);
    EXPECT_EQ(timeline->memory().events(), kThreads * kBlocks);
    EXPECT_TRUE(timeline->gaps().all().empty());
    EXPECT_FALSE(timeline->memory().peak(0, timeline->end()).incomplete);
    EXPECT_LE(drainer.largestDrain(), kMost + kThreads) << "what waits is bounded";
}

TEST(Recorder, TheThreadThatDrainsNeverWaits) {
    Recorder recorder({.maxWaiting = 4, .drainSoon = [] { ADD_FAILURE() << "nobody else drains"; }});
    recorder.drain();
    for (std::uint64_t id = 1; id <= 100; ++id) {
        recorder.record(block(id, 5));
    }
    EXPECT_EQ(recorder.events(), 100U);
    EXPECT_EQ(recorder.lostRecords(), 0U);
}

TEST(Recorder, WhoeverWaitsGoesOnWhenNobodyDrainsAnyMore) {
    std::atomic<bool> asked{false};
    Recorder recorder({.maxWaiting = 4, .drainSoon = [&asked] { asked = true; }});
    std::thread producer([&recorder] {
        for (std::uint64_t id = 1; id <= 10; ++id) {
            recorder.record(block(id, static_cast<base::TimeNs>(id)));
        }
    });
    while (!asked) {
        std::this_thread::yield();
    }
    recorder.stopWaiting();
    producer.join();
    EXPECT_EQ(recorder.events(), 4U);
    EXPECT_EQ(recorder.lostRecords(), 6U);
}

TEST(Recorder, MarksTheGapWhereItDroppedRecords) {
    Recorder recorder(RecorderOptions{.maxWaiting = 4});
    RunTimelineBuilder builder;
    const auto drain = [&](bool last) {
        for (const base::ColumnChunk& chunk : last ? recorder.finish() : recorder.drain()) {
            builder.add(chunk);
        }
    };
    for (std::uint64_t id = 1; id <= 7; ++id) {
        recorder.record(block(id, static_cast<base::TimeNs>(10 * id)));
    }
    recorder.record(base::CounterEvent{80, {}, 1});
    drain(false);
    recorder.record(block(8, 100));
    drain(true);
    const auto timeline = builder.snapshot();
    ASSERT_EQ(timeline->gaps().all().size(), 1U);
    EXPECT_EQ(timeline->gaps().all()[0].begin, 50);
    EXPECT_EQ(timeline->gaps().all()[0].end, 80);
    EXPECT_EQ(timeline->gaps().all()[0].records, 4U);
    EXPECT_EQ(timeline->gaps().all()[0].memoryRecords, 3U);
    EXPECT_EQ(timeline->memory().incompleteFrom(), 50);
    EXPECT_FALSE(timeline->memory().peak(0, 50).incomplete) << "what was before the gap is certain";
    EXPECT_TRUE(timeline->memory().peak(0, 51).incomplete);
    EXPECT_TRUE(timeline->memory().peak(90, 200).incomplete) << "a block of the gap may still live";
    const std::vector<MemoryColumn> columns = timeline->memory().query(0, 100, 4);
    EXPECT_FALSE(columns[1].incomplete);
    EXPECT_TRUE(columns[2].incomplete);
    const std::vector<MemoryColumn> byEvent = timeline->memory().queryEvents(0, 5, 5);
    EXPECT_FALSE(byEvent[3].incomplete);
    EXPECT_TRUE(byEvent[4].incomplete);
}

TEST(Recorder, AGapWithoutMemoryRecordsLeavesPeaksCertain) {
    Recorder recorder(RecorderOptions{.maxWaiting = 4});
    for (std::uint64_t id = 1; id <= 4; ++id) {
        recorder.record(block(id, static_cast<base::TimeNs>(10 * id)));
    }
    recorder.record(base::SpanEvent{50, 90, {}, {}, {}, 0, 0});
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    ASSERT_EQ(timeline->gaps().all().size(), 1U);
    EXPECT_EQ(timeline->gaps().all()[0].end, 90);
    EXPECT_FALSE(timeline->memory().peak(0, 200).incomplete);
}

TEST(Recorder, ThreadsRecordWhileOneDrains) {
    constexpr std::uint64_t kThreads = 4;
    constexpr std::uint64_t kBlocks = 3000;
    Recorder recorder;
    RunTimelineBuilder builder;
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
    std::shared_ptr<const RunTimeline> shown;
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
            for (const MemoryColumn& column : snapshot->memory().query(0, snapshot->end(), 50)) {
                EXPECT_LE(column.minTotal, column.maxTotal);
            }
            snapshot->memory().shapes(0, snapshot->end(), 10, 10, true);
            snapshot->memory().aliveAt(snapshot->end() / 2);
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
    EXPECT_EQ(timeline->memory().events(), recorder.events());
    EXPECT_EQ(timeline->memory().allocations().size(), kThreads * kBlocks);
    EXPECT_EQ(timeline->memory().aliveAt(timeline->end()).size(), kThreads * (kBlocks / 3));
    EXPECT_EQ(timeline->text(timeline->memory().allocations()[0].name).substr(0, 7), "thread ");
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
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    EXPECT_EQ(timeline->memory().events(), 20U);
    EXPECT_EQ(timeline->memory().peak(0, 10).maxTotal, 1000U);
    EXPECT_TRUE(timeline->memory().aliveAt(5).empty());
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
    event.dimensions = base::kMaxTraceDimensions + 1;
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
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    ASSERT_EQ(timeline->scopes().all().size(), 7U);
    ASSERT_EQ(timeline->memory().allocations().size(), 2U);
    const AllocationRow second = timeline->memory().allocations()[1];
    EXPECT_EQ(second.id, 109U);
    EXPECT_EQ(second.scope, 107U);
    EXPECT_EQ(second.born, 2010);
    EXPECT_EQ(second.freed, 2020);
    EXPECT_EQ(timeline->scopes().path(second.scope), "decode / step 4 / layer 11 / ExpertMlp");
    const ScopeRow* const scope = timeline->scopes().find(102);
    ASSERT_NE(scope, nullptr);
    EXPECT_EQ(scope->begin, 1020);
    EXPECT_EQ(scope->end, 1100);
    EXPECT_EQ(scope->bytes, 7U);
    EXPECT_EQ(scope->flops, 8U);
    EXPECT_EQ(timeline->scopes().find(100)->parent, 1U);
    EXPECT_EQ(timeline->scopes().find(100)->index, 3);
    EXPECT_EQ(timeline->scopes().find(101)->parent, 100U);
    EXPECT_EQ(timeline->scopes().find(1)->end, 3000);
    EXPECT_EQ(timeline->scopes().find(104), nullptr);
    EXPECT_EQ(timeline->scopes().find(99), nullptr);
    ASSERT_EQ(timeline->kernels().spans().size(), 2U);
    EXPECT_EQ(timeline->kernels().spans()[1].begin, 2005);
    EXPECT_EQ(timeline->kernels().spans()[1].end, 2025);
    EXPECT_EQ(timeline->kernels().spans()[1].scope.value, 107U);
    base::TimeNs before = 0;
    std::vector<std::uint64_t> steps, phases, kept;
    for (const ScopeRow& row : timeline->scopes().all()) {
        EXPECT_LE(before, row.begin);
        before = row.begin;
        if (row.kind == base::ScopeKind::Step || row.kind == base::ScopeKind::Phase) {
            (row.kind == base::ScopeKind::Step ? steps : phases).push_back(row.id);
        }
    }
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{100, 105}));
    for (const ScopeRow& row : timeline->scopes().steps()) {
        kept.push_back(row.id);
    }
    EXPECT_EQ(kept, steps);
    EXPECT_EQ(phases.size(), 1U);
    ASSERT_EQ(timeline->scopes().phases().size(), 1U);
    EXPECT_EQ(timeline->scopes().phases()[0].id, phases[0]);
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/run_timeline.h"

#include <gtest/gtest.h>
#include <numeric>
#include <set>

#include "profiler/record/streams.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/token_facet.h"
#include "tests/profiler/record/reference.h"
#include "tests/repetitions.h"

namespace vitrine::profiler {
namespace {

using testing::makeRun;
using testing::RandomRun;
using testing::Reference;
using testing::RunShape;

std::shared_ptr<const RunTimeline> build(std::vector<base::ColumnChunk> chunks, std::uint64_t shuffleSeed = 0) {
    if (shuffleSeed != 0) {
        std::mt19937_64 random(shuffleSeed);
        std::shuffle(chunks.begin(), chunks.end(), random);
    }
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : chunks) {
        builder.add(chunk);
    }
    return builder.snapshot();
}

void expectColumn(const MemoryColumn& got, const MemoryColumn& want) {
    EXPECT_EQ(got.minTotal, want.minTotal);
    EXPECT_EQ(got.maxTotal, want.maxTotal);
    EXPECT_EQ(got.maxTime, want.maxTime);
    EXPECT_EQ(got.atMax, want.atMax);
    EXPECT_EQ(got.events, want.events);
    EXPECT_EQ(Reference::total(got.atMax), got.maxTotal);
}

void expectQueries(const RunTimeline& timeline, const Reference& reference, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto device = reference.states(true);
    const auto host = reference.states(false);
    ASSERT_EQ(timeline.memory().events(), reference.events.size());
    ASSERT_TRUE(timeline.memory().complete());
    for (int round = 0; round < 8; ++round) {
        const auto span = static_cast<std::uint64_t>(timeline.end()) + 20;
        base::TimeNs begin = round == 0 ? 0 : static_cast<base::TimeNs>(random() % span);
        base::TimeNs end = round == 0 ? timeline.end() : static_cast<base::TimeNs>(random() % span);
        if (begin > end) {
            std::swap(begin, end);
        }
        const int columns = static_cast<int>(1 + random() % 40);
        const auto got = timeline.memory().query(begin, end, columns);
        const auto gotHost = timeline.memory().hostQuery(begin, end, columns);
        ASSERT_EQ(got.size(), static_cast<std::size_t>(columns));
        for (int i = 0; i < columns; ++i) {
            const base::TimeNs low = begin + (end - begin) * i / columns;
            const base::TimeNs high = begin + (end - begin) * (i + 1) / columns;
            expectColumn(got[static_cast<std::size_t>(i)], reference.window(device, low, high));
            expectColumn(gotHost[static_cast<std::size_t>(i)], reference.window(host, low, high));
        }
        expectColumn(timeline.memory().peak(begin, end), reference.window(device, begin, end));
        const RangeTotals totals = timeline.memory().totals(begin, end);
        const RangeTotals want = reference.totals(device, begin, end);
        EXPECT_EQ(totals.births, want.births);
        EXPECT_EQ(totals.deaths, want.deaths);
        EXPECT_NEAR(totals.byteNs, want.byteNs, 1e-9 * want.byteNs);
        std::size_t index = 0;
        while (index < reference.events.size() && reference.events[index].time <= begin) {
            ++index;
        }
        EXPECT_EQ(timeline.memory().at(begin), device[index]);
        EXPECT_EQ(timeline.memory().hostAt(begin), host[index]);
    }
}

void expectEventAxis(const RunTimeline& timeline, const Reference& reference) {
    const auto states = reference.states(true);
    const auto count = reference.events.size();
    const auto columns = timeline.memory().queryEvents(0, count, static_cast<int>(count));
    ASSERT_EQ(columns.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(columns[i].atMax, states[i + 1]);
        EXPECT_EQ(columns[i].maxTime, reference.events[i].time);
        EXPECT_EQ(columns[i].events, 1U);
        EXPECT_EQ(timeline.memory().eventTime(i), reference.events[i].time);
    }
    const auto three = timeline.memory().queryEvents(0, count, 3);
    for (std::size_t piece = 0; piece < 3; ++piece) {
        std::uint64_t highest = 0;
        for (std::size_t i = count * piece / 3; i < count * (piece + 1) / 3; ++i) {
            highest = std::max(highest, Reference::total(states[i + 1]));
        }
        EXPECT_EQ(three[piece].maxTotal, highest);
    }
}

void expectRows(const RunTimeline& timeline, const Reference& reference) {
    const auto rows = timeline.memory().allocations();
    ASSERT_EQ(rows.size(), reference.blocks.size());
    base::TimeNs before = 0;
    std::set<std::uint64_t> ids;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const AllocationRow row = rows[i];
        EXPECT_GE(row.born, before);
        before = row.born;
        ids.insert(row.id);
        ASSERT_TRUE(reference.blocks.contains(row.id));
        const auto& [event, freed] = reference.blocks.at(row.id);
        EXPECT_EQ(row.address, event.address);
        EXPECT_EQ(row.bytes, event.bytes);
        EXPECT_EQ(row.born, event.time);
        EXPECT_EQ(row.freed, freed);
        EXPECT_EQ(row.scope, event.scope.value);
        EXPECT_EQ(row.name, event.name.value);
        EXPECT_EQ(row.category, event.category);
        EXPECT_EQ(row.space, event.space);
        EXPECT_EQ(row.dtype, event.dtype);
        EXPECT_EQ(row.format, event.format.value);
        EXPECT_EQ(row.dimensions, event.dimensions);
        EXPECT_EQ(row.shape, event.shape);
        if (i % (1 + rows.size() / 500) == 0) {
            EXPECT_EQ(timeline.memory().findAllocation(row.id), i);
        }
    }
    EXPECT_EQ(ids.size(), rows.size());
}

void expectAlive(const RunTimeline& timeline, const Reference& reference, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 10; ++round) {
        const auto time = static_cast<base::TimeNs>(random() % static_cast<std::uint64_t>(timeline.end() + 1));
        std::vector<std::uint64_t> want;
        for (const auto& [id, block] : reference.blocks) {
            if (block.event.space == base::MemorySpace::Device && block.event.time <= time &&
                (block.freed < 0 || block.freed > time)) {
                want.push_back(id);
            }
        }
        std::vector<std::uint64_t> got;
        std::uint64_t bytes = 0;
        std::uint64_t smallest = UINT64_MAX;
        for (const std::size_t row : timeline.memory().aliveAt(time)) {
            const AllocationRow allocation = timeline.memory().allocations()[row];
            got.push_back(allocation.id);
            EXPECT_LE(allocation.bytes, smallest);
            smallest = allocation.bytes;
            bytes += allocation.bytes;
        }
        std::ranges::sort(got);
        EXPECT_EQ(got, want);
        EXPECT_EQ(bytes, Reference::total(timeline.memory().at(time)));
    }
}

void expectShapes(const RunTimeline& timeline, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 6; ++round) {
        base::TimeNs begin =
            round < 2 ? 0 : static_cast<base::TimeNs>(random() % static_cast<std::uint64_t>(timeline.end()));
        base::TimeNs end = round < 2 ? timeline.end()
                                     : static_cast<base::TimeNs>(random() % static_cast<std::uint64_t>(timeline.end()));
        if (begin > end) {
            std::swap(begin, end);
        }
        const bool byAddress = round % 2 == 0;
        const double nsPerPixel = static_cast<double>(end - begin + 1) / static_cast<double>(1 + random() % 200);
        const double bytesPerPixel = static_cast<double>(1 + random() % 20'000);
        const auto shapes = timeline.memory().shapes(begin, end, nsPerPixel, bytesPerPixel, byAddress);
        EXPECT_LE(shapes.size(), 20'000U);
        std::uint64_t drawn = 0;
        std::map<std::size_t, AllocationShape> alone;
        for (const AllocationShape& shape : shapes) {
            drawn += shape.count;
            if (shape.count == 1) {
                alone.emplace(shape.row, shape);
            }
        }
        std::uint64_t want = 0;
        for (std::size_t i = 0; i < timeline.memory().allocations().size(); ++i) {
            const AllocationRow row = timeline.memory().allocations()[i];
            const base::TimeNs death = row.freed < 0 ? timeline.end() : row.freed;
            if (row.space != base::MemorySpace::Device || row.born > end || death < begin ||
                (byAddress && row.category == base::MemoryCategory::Untracked)) {
                continue;
            }
            ++want;
            const std::uint64_t address = byAddress ? row.address : timeline.memory().stackedAddress(i);
            EXPECT_LE(byAddress ? timeline.memory().compactAddress(address) + row.bytes : address + row.bytes,
                      timeline.memory().extent(byAddress));
            const bool big = static_cast<double>(death - row.born) >= 2 * nsPerPixel &&
                             static_cast<double>(row.bytes) >= 2 * bytesPerPixel;
            if (big) {
                ASSERT_TRUE(alone.contains(i));
                EXPECT_EQ(alone.at(i).addressBegin, address);
                EXPECT_EQ(alone.at(i).addressEnd, address + row.bytes);
                EXPECT_EQ(alone.at(i).begin, row.born);
                EXPECT_EQ(alone.at(i).end, death);
            } else {
                const bool covered = std::ranges::any_of(shapes, [&](const AllocationShape& shape) {
                    return shape.addressBegin <= address && shape.addressEnd >= address + row.bytes &&
                           shape.begin <= row.born && shape.end >= death;
                });
                EXPECT_TRUE(covered);
            }
        }
        EXPECT_EQ(drawn, want);
    }
}

void expectStack(const RunTimeline& timeline) {
    const auto rows = timeline.memory().allocations();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const AllocationRow a = rows[i];
            const AllocationRow b = rows[j];
            const bool together = a.space == base::MemorySpace::Device && b.space == base::MemorySpace::Device &&
                                  a.born < (b.freed < 0 ? timeline.end() : b.freed) &&
                                  b.born < (a.freed < 0 ? timeline.end() : a.freed);
            if (together && a.bytes > 0 && b.bytes > 0) {
                const std::uint64_t at = timeline.memory().stackedAddress(i);
                const std::uint64_t other = timeline.memory().stackedAddress(j);
                EXPECT_TRUE(at + a.bytes <= other || other + b.bytes <= at);
            }
        }
    }
}

/// Every prefix of the events: its split, and that the living blocks add up to it.
void expectPrefixes(const RunTimeline& timeline, const Reference& reference) {
    const auto states = reference.states(true);
    for (std::uint64_t count = 0; count <= timeline.memory().events(); count += 1 + count / 16) {
        EXPECT_EQ(timeline.memory().atEvent(count), states[count]);
        base::CategoryBytes alive{};
        std::set<std::size_t> rows;
        for (const std::size_t row : timeline.memory().aliveAtEvent(count)) {
            const AllocationRow allocation = timeline.memory().allocations()[row];
            alive[static_cast<std::size_t>(allocation.category)] += allocation.bytes;
            EXPECT_TRUE(rows.insert(row).second);
        }
        EXPECT_EQ(alive, states[count]);
    }
}

class RandomRuns : public ::testing::TestWithParam<int> {};

TEST_P(RandomRuns, AgreeWithTheReference) {
    for (std::uint64_t seed = static_cast<std::uint64_t>(GetParam()) * 50;
         seed < static_cast<std::uint64_t>(GetParam() + 1) * 50; ++seed) {
        SCOPED_TRACE(seed);
        RunShape shape;
        shape.steps = static_cast<int>(1 + seed * 37 % 900);
        shape.replays = seed % 3 != 0;
        shape.hostMemory = seed % 4 != 0;
        shape.lateRecords = seed % 5 != 0;
        const RandomRun run = makeRun(seed, shape);
        const Reference reference(run);
        const auto timeline = build(testing::record(run, seed), seed % 2 == 0 ? seed + 1 : 0);
        expectQueries(*timeline, reference, seed);
        expectEventAxis(*timeline, reference);
        expectRows(*timeline, reference);
        expectAlive(*timeline, reference, seed);
        expectShapes(*timeline, seed);
        expectPrefixes(*timeline, reference);
        if (seed % 10 == 1) {
            expectStack(*timeline);
        }
        if (HasFatalFailure() || HasNonfatalFailure()) {
            return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRuns, ::testing::Range(0, 8));

TEST(RunTimeline, ALiveTailEqualsAllAtOnceAndOldSnapshotsStay) {
    for (std::uint64_t seed = 1; seed <= vitrine::test::repetitions(60UL); ++seed) {
        SCOPED_TRACE(seed);
        const RandomRun run = makeRun(seed, {.steps = 700});
        std::vector<base::ColumnChunk> chunks = testing::record(run, seed);
        if (seed % 3 == 0) {
            // Streams one after the other, as a reader of a file may do.
            std::ranges::stable_sort(chunks, {}, &base::ColumnChunk::stream);
        }
        RunTimelineBuilder builder;
        std::vector<std::pair<std::shared_ptr<const RunTimeline>, std::vector<MemoryColumn>>> earlier;
        for (const base::ColumnChunk& chunk : chunks) {
            builder.add(chunk);
            auto snapshot = seed % 2 == 0 ? builder.preview() : builder.snapshot();
            auto columns = snapshot->memory().query(0, snapshot->end(), 17);
            earlier.emplace_back(std::move(snapshot), std::move(columns));
        }
        const auto last = builder.snapshot();
        const Reference reference(run);
        expectQueries(*last, reference, seed);
        expectRows(*last, reference);
        expectAlive(*last, reference, seed);
        expectShapes(*last, seed);
        for (const auto& [snapshot, columns] : earlier) {
            const auto now = snapshot->memory().query(0, snapshot->end(), 17);
            for (std::size_t i = 0; i < columns.size(); ++i) {
                expectColumn(now[i], columns[i]);
            }
        }
        if (HasFatalFailure() || HasNonfatalFailure()) {
            return;
        }
    }
}

/// Long enough for several levels and blocks, with much to take back.
TEST(RunTimeline, ALongRunIsExactInAnyOrder) {
    const RandomRun run = makeRun(99, {.steps = 60'000});
    const Reference reference(run);
    ASSERT_GT(reference.events.size(), 70'000U);
    std::vector<base::ColumnChunk> chunks = testing::record(run, 99, 2000);
    for (int order = 0; order < 3; ++order) {
        SCOPED_TRACE(order);
        if (order == 1) {
            std::ranges::stable_sort(chunks, {}, &base::ColumnChunk::stream);
        } else if (order == 2) {
            std::mt19937_64 random(5);
            std::shuffle(chunks.begin(), chunks.end(), random);
        }
        RunTimelineBuilder builder;
        std::shared_ptr<const RunTimeline> kept;
        std::vector<MemoryColumn> shown;
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            builder.add(chunks[i]);
            if (i % 20 == 7) {
                const auto snapshot = builder.snapshot();
                if (i == 47) {
                    kept = snapshot;
                    shown = kept->memory().query(0, kept->end(), 300);
                }
            }
        }
        const auto timeline = builder.snapshot();
        expectQueries(*timeline, reference, 7);
        expectRows(*timeline, reference);
        expectAlive(*timeline, reference, 7);
        ASSERT_NE(kept, nullptr);
        const auto again = kept->memory().query(0, kept->end(), 300);
        for (std::size_t i = 0; i < shown.size(); ++i) {
            expectColumn(again[i], shown[i]);
        }
        std::uint64_t drawn = 0;
        for (const AllocationShape& shape : timeline->memory().shapes(0, timeline->end(), 1e4, 1e4, true)) {
            drawn += shape.count;
        }
        std::uint64_t device = 0;
        for (const auto& [id, block] : reference.blocks) {
            device += block.event.space == base::MemorySpace::Device &&
                              block.event.category != base::MemoryCategory::Untracked
                          ? 1
                          : 0;
        }
        EXPECT_EQ(drawn, device);
    }
}

TEST(RunTimeline, APeakOfOneInstantCounts) {
    RandomRun run;
    for (std::uint64_t id = 1; id <= 3; ++id) {
        base::AllocationEvent event;
        event.time = 5;
        event.id = id;
        event.bytes = 10 * id;
        event.category = base::MemoryCategory::Workspace;
        run.events.emplace_back(event);
    }
    run.events.emplace_back(base::FreeEvent{5, 3});
    run.events.emplace_back(base::FreeEvent{5, 2});
    const auto timeline = build(testing::record(run, 1));
    const MemoryColumn peak = timeline->memory().peak(timeline->begin(), timeline->end());
    EXPECT_EQ(peak.maxTotal, 60U);
    EXPECT_EQ(peak.maxTime, 5);
    EXPECT_EQ(peak.atMax[static_cast<std::size_t>(base::MemoryCategory::Workspace)], 60U);
    EXPECT_EQ(timeline->memory().at(5)[static_cast<std::size_t>(base::MemoryCategory::Workspace)], 10U);
    EXPECT_EQ(timeline->memory().at(4), base::CategoryBytes{});
    EXPECT_EQ(timeline->memory().peaks(3), std::vector<base::TimeNs>{5});
}

TEST(RunTimeline, ADeathReportedBeforeTheBirthHappensAtTheBirth) {
    RandomRun run;
    base::AllocationEvent event;
    event.time = 50;
    event.id = 7;
    event.bytes = 100;
    run.events = {event, base::FreeEvent{40, 7}, base::FreeEvent{60, 8}};
    const auto timeline = build(testing::record(run, 1));
    EXPECT_EQ(timeline->memory().events(), 2U);
    EXPECT_EQ(timeline->memory().allocations()[0].freed, 50);
    EXPECT_EQ(timeline->memory().at(60), base::CategoryBytes{});
    EXPECT_EQ(timeline->memory().peak(0, 100).maxTotal, 100U);
}

TEST(RunTimeline, IsEmptyWithoutEvents) {
    RunTimelineBuilder builder;
    const auto timeline = builder.snapshot();
    EXPECT_EQ(timeline->memory().events(), 0U);
    EXPECT_EQ(timeline->memory().query(0, 100, 4).size(), 4U);
    EXPECT_TRUE(timeline->memory().query(0, 100, 0).empty());
    EXPECT_TRUE(timeline->memory().allocations().empty());
    EXPECT_TRUE(timeline->memory().aliveAt(0).empty());
    EXPECT_TRUE(timeline->memory().shapes(0, 1, 1, 1, true).empty());
    EXPECT_TRUE(timeline->memory().peaks(5).empty());
    EXPECT_EQ(timeline->scopes().find(1), nullptr);
    EXPECT_EQ(timeline->scopes().path(1), "");
}

TEST(RunTimeline, EachDeviceOfARunHasItsOwn) {
    Recorder recorder;
    const base::StringId power = recorder.intern("gpu.power_w");
    auto step = std::make_shared<base::StepTemplate>();
    step->duration = 10;
    step->idCount = 2;
    base::AllocationEvent inside;
    inside.time = 2;
    inside.id = 1;
    inside.bytes = 1000;
    step->events = {base::ScopeBeginEvent{0, {0}, {0}, base::ScopeKind::Step, power, -1, 1}, inside,
                    base::FreeEvent{8, 1}, base::ScopeEndEvent{10, {0}, 0, 0}};
    recorder.record(base::StepTemplateEvent{step});
    for (const base::DeviceRank device : {base::DeviceRank{0}, base::DeviceRank{1}}) {
        base::AllocationEvent block;
        block.time = 5;
        block.id = 100 + device;
        block.bytes = 50 + device;
        block.device = device;
        recorder.record(block);
        recorder.record(base::StepReplayedEvent{20, 30, 0, 200 + 10u * device, {}, 7, device});
        recorder.record(base::CounterEvent{6, power, 300.0 + device, device});
    }
    recorder.record(base::FreeEvent{40, 101, 1});
    recorder.record(base::TokenEvent{35, 0, 1, 2, 0});
    const std::vector<base::ColumnChunk> chunks = recorder.finish();
    for (const base::DeviceRank device : {base::DeviceRank{0}, base::DeviceRank{1}}) {
        RunTimelineBuilder builder(device);
        for (const base::ColumnChunk& chunk : chunks) {
            builder.add(chunk);
        }
        const auto preview = builder.preview();
        EXPECT_TRUE(preview->memory().complete()) << "records of other devices leave no gap in the order";
        const auto timeline = builder.snapshot();
        EXPECT_EQ(timeline->memory().events(), device == 0 ? 3U : 4U);
        EXPECT_EQ(timeline->memory().peak(0, 100).maxTotal, 1050U + device);
        EXPECT_EQ(timeline->memory().peak(0, 100).maxTime, 22);
        EXPECT_EQ(timeline->memory().aliveAt(50).size(), device == 0 ? 1U : 0U);
        ASSERT_EQ(timeline->scopes().steps().size(), 1U);
        EXPECT_EQ(timeline->scopes().steps()[0].id, 200U + 10U * device);
        EXPECT_EQ(timeline->counters().samples("gpu.power_w"),
                  (std::vector<std::pair<base::TimeNs, double>>{{6, 300.0 + device}}));
        EXPECT_EQ(timeline->tokens().all().size(), 1U) << "of the run as a whole";
        RunTimelineBuilder stored(device);
        for (const base::ColumnChunk& chunk : chunks) {
            if (pyramidLevel(chunk.stream, device) >= 0) {
                stored.add(chunk);
            }
        }
        EXPECT_EQ(stored.snapshot()->memory().peak(0, 100).maxTotal, 1050U + device);
    }
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/streams.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

#include "base/error.h"
#include "profiler/record/recorder.h"
#include "profiler/record/stream_writer.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/pyramid.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "profiler/timeline/scope_facet.h"
#include "tests/profiler/record/reference.h"
#include "tests/repetitions.h"

namespace vitrine::profiler {
namespace {

/// A batch with something in every stream.
EventBatch fullBatch() {
    EventBatch batch;
    batch.strings = {{1, "layers.0.attention"}, {2, ""}, {7, "Größe"}};
    base::AllocationEvent block;
    block.time = 5;
    block.id = 10;
    block.address = 0x7000'0000'0000;
    block.bytes = 4096;
    block.scope.value = 3;
    block.name.value = 1;
    block.category = base::MemoryCategory::KvCache;
    block.space = base::MemorySpace::PinnedHost;
    block.dtype = 3;
    block.format.value = 7;
    block.dimensions = 2;
    block.shape = {4, -1};
    batch.allocations = {{0, block}};
    block.dimensions = 0;
    block.shape = {};
    block.bytes = 0;
    batch.allocations.push_back({3, block});
    batch.frees = {{1, {6, 10}}};
    batch.scopeBegins = {{1, {3}, {0}, base::ScopeKind::Step, {1}, 4, 65536},
                         {1, {4}, {3}, base::ScopeKind::Op, {7}, -1, 0, 0, base::MemoryCategory::Untracked},
                         {2, {5}, {3}, base::ScopeKind::Op, {1}, -1, 0, 0, base::MemoryCategory::Comm}};
    batch.scopeEnds = {{9, {3}, 1000, 2000}};
    batch.spans = {{1, 4, {1}, {7}, {3}, 77, 88}};
    batch.counters = {{2, {7}, 0.25}, {3, {7}, -1e300}};
    batch.tokens = {{8, 1, 2, 200'000, -0.5F}};
    batch.outOfMemory = {{4, {9, 100, 80, 70, 5, {3}, {1}, base::MemoryCategory::Logits}}};
    auto step = std::make_shared<base::StepTemplate>();
    step->id = 2;
    step->duration = 100;
    step->idCount = 3;
    block.time = 0;
    step->events = {
        base::ScopeBeginEvent{0, {0}, {0}, base::ScopeKind::Step, {1}, -1, 7},
        base::ScopeBeginEvent{0, {1}, {0}, base::ScopeKind::Op, {7}, -1, 0, 0, base::MemoryCategory::Optimizer},
        block,
        base::FreeEvent{50, 10},
        base::SpanEvent{60, 70, {1}, {7}, {0}, 5, 6},
        base::ScopeEndEvent{100, {0}, 11, 12}};
    batch.templates = {step, std::make_shared<base::StepTemplate>()};
    batch.replays = {{2, {10, 110, 2, 500, {3}, 9}}};
    batch.of<base::BatchStepEvent>() = {{1, 9, 7, 3, 1, 2, 40, 5, 4, 6, 5, 1, 12, 2, 3, 20}, {9, 12, 8}};
    batch.of<base::SlotSpanEvent>() = {{1, 9, 7, 4, 2, 11, base::SlotState::Prefill, 40, 5},
                                       {1, 9, 7, 4, 3, -1, base::SlotState::Preempted, 0, 0}};
    batch.of<base::RequestEvent>() = {{-5, 11, base::RequestChange::Arrived, -1, -1, 4, {}},
                                      {3, 11, base::RequestChange::Refused, -1, -1, 4, {7}},
                                      {4, 12, base::RequestChange::Admitted, 2, 0, 0, {}, 6}};
    batch.of<base::KvPageEvent>() = {{4, 1, 99, base::PageState::Cached, -1, 0},
                                     {5, 0, 0, base::PageState::Used, 3, 2}};
    batch.of<base::TrainingStepEvent>() = {{1, 9, 1, 128, 2.5, 1e-4, 0.75}, {9, 12, 2, 64, 2.25, 2e-4, 1e300}};
    batch.of<base::TrainingMarkEvent>() = {{9, 11, 1, base::TrainingMark::Evaluated, 2.25}};
    batch.of<base::GapEvent>() = {{3, 9, 1000, 400}};
    return batch;
}

void printBlock(std::ostringstream& out, const base::AllocationEvent& e) {
    out << "A " << e.time << ' ' << e.id << ' ' << e.address << ' ' << e.bytes << ' ' << e.scope.value << ' '
        << e.name.value << ' ' << static_cast<int>(e.category) << static_cast<int>(e.space) << ' ' << +e.dtype << ' '
        << +e.dimensions << ' ' << e.format.value;
    for (const std::int64_t dim : e.shape) {
        out << ' ' << dim;
    }
    out << '\n';
}

void printServingAndTraining(std::ostringstream& out, const EventBatch& batch) {
    for (const auto& e : batch.of<base::BatchStepEvent>()) {
        out << "step " << e.begin << ' ' << e.end << ' ' << e.index << ' ' << e.decodeRows << ' ' << e.prefillRows
            << ' ' << e.paddingRows << ' ' << e.prefillTokens << ' ' << e.paddingTokens << ' ' << e.sampled << ' '
            << e.queued << ' ' << e.running << ' ' << e.preempted << ' ' << e.usedPages << ' ' << e.sharedPages << ' '
            << e.cachedPages << ' ' << e.freePages << '\n';
    }
    for (const auto& e : batch.of<base::GapEvent>()) {
        out << "gap " << e.begin << ' ' << e.end << ' ' << e.records << ' ' << e.memoryRecords << '\n';
    }
    for (const auto& e : batch.of<base::SlotSpanEvent>()) {
        out << "slot " << e.begin << ' ' << e.end << ' ' << e.firstStep << ' ' << e.steps << ' ' << e.slot << ' '
            << e.request << ' ' << static_cast<int>(e.state) << ' ' << e.tokens << ' ' << e.padding << '\n';
    }
    for (const auto& e : batch.of<base::RequestEvent>()) {
        out << "request " << e.time << ' ' << e.request << ' ' << static_cast<int>(e.phase) << ' ' << e.slot << ' '
            << e.step << ' ' << e.tokens << ' ' << e.reason.value << ' ' << e.sequence << '\n';
    }
    for (const auto& e : batch.of<base::TrainingStepEvent>()) {
        out << "trained " << e.begin << ' ' << e.end << ' ' << e.step << ' ' << e.tokens << ' ' << e.loss << ' '
            << e.learningRate << ' ' << e.gradientNorm << '\n';
    }
    for (const auto& e : batch.of<base::TrainingMarkEvent>()) {
        out << "mark " << e.begin << ' ' << e.end << ' ' << e.step << ' ' << static_cast<int>(e.kind) << ' ' << e.value
            << '\n';
    }
    for (const auto& e : batch.of<base::KvPageEvent>()) {
        out << "page " << e.time << ' ' << e.group << ' ' << e.page << ' ' << static_cast<int>(e.state) << ' '
            << e.owner << ' ' << e.sequences << '\n';
    }
}

/// Everything of a batch as one text, to compare and to show.
std::string printed(const EventBatch& batch) {
    std::ostringstream out;
    const auto block = [&out](const base::AllocationEvent& e) { printBlock(out, e); };
    const auto begin = [&out](const base::ScopeBeginEvent& e) {
        out << "B " << e.time << ' ' << e.id.value << ' ' << e.parent.value << ' ' << static_cast<int>(e.kind) << ' '
            << e.name.value << ' ' << e.index << ' ' << e.tokens << ' ' << static_cast<int>(e.category) << '\n';
    };
    const auto end = [&out](const base::ScopeEndEvent& e) {
        out << "E " << e.time << ' ' << e.id.value << ' ' << e.bytes << ' ' << e.flops << '\n';
    };
    const auto span = [&out](const base::SpanEvent& e) {
        out << "S " << e.begin << ' ' << e.end << ' ' << e.lane.value << ' ' << e.name.value << ' ' << e.scope.value
            << ' ' << e.bytes << ' ' << e.flops << '\n';
    };
    for (const auto& text : batch.strings) {
        out << text.id << '=' << text.text << '\n';
    }
    for (const auto& [order, event] : batch.allocations) {
        out << order << ' ';
        block(event);
    }
    for (const auto& [order, event] : batch.frees) {
        out << order << " F " << event.time << ' ' << event.id << '\n';
    }
    std::ranges::for_each(batch.scopeBegins, begin);
    std::ranges::for_each(batch.scopeEnds, end);
    std::ranges::for_each(batch.spans, span);
    for (const auto& event : batch.counters) {
        out << "C " << event.time << ' ' << event.name.value << ' ' << event.value << '\n';
    }
    for (const auto& event : batch.tokens) {
        out << "T " << event.time << ' ' << event.request << ' ' << event.position << ' ' << event.token << ' '
            << event.logprob << '\n';
    }
    for (const auto& [order, event] : batch.outOfMemory) {
        out << order << " O " << event.time << ' ' << event.requested << ' ' << event.budget << ' ' << event.reserved
            << ' ' << event.largestFree << ' ' << event.scope.value << ' ' << event.name.value << ' '
            << static_cast<int>(event.category) << '\n';
    }
    for (const auto& step : batch.templates) {
        out << "template " << step->id << ' ' << step->duration << ' ' << step->idCount << '\n';
        for (const base::TraceEvent& event : step->events) {
            if (const auto* e = std::get_if<base::AllocationEvent>(&event)) {
                block(*e);
            } else if (const auto* f = std::get_if<base::FreeEvent>(&event)) {
                out << "F " << f->time << ' ' << f->id << '\n';
            } else if (const auto* b = std::get_if<base::ScopeBeginEvent>(&event)) {
                begin(*b);
            } else if (const auto* x = std::get_if<base::ScopeEndEvent>(&event)) {
                end(*x);
            } else if (const auto* s = std::get_if<base::SpanEvent>(&event)) {
                span(*s);
            }
        }
    }
    for (const auto& [order, event] : batch.replays) {
        out << order << " R " << event.begin << ' ' << event.end << ' ' << event.stepTemplate << ' ' << event.firstId
            << ' ' << event.parent.value << ' ' << event.index << '\n';
    }
    printServingAndTraining(out, batch);
    return out.str();
}

TEST(Streams, ComeBackAsTheyWere) {
    const EventBatch batch = fullBatch();
    ChunkNumbers numbers;
    EventBatch back;
    for (const base::ColumnChunk& chunk : encodeBatch(batch, numbers)) {
        EXPECT_EQ(chunk.sequence, 0U);
        EXPECT_TRUE(decodeInto(base::fromBytes(base::toBytes(chunk)), back)) << chunk.stream;
    }
    EXPECT_EQ(printed(back), printed(batch));
    EXPECT_EQ(encodeBatch(batch, numbers).front().sequence, 1U);
}

std::set<std::string> columnsOf(const std::vector<base::ColumnChunk>& chunks) {
    std::set<std::string> columns;
    for (const base::ColumnChunk& chunk : chunks) {
        for (const base::Column& column : chunk.columns) {
            columns.insert(column.name);
        }
    }
    return columns;
}

TEST(Streams, SayTheDeviceOnlyInRunsOnSeveral) {
    EventBatch batch = fullBatch();
    ChunkNumbers numbers;
    const std::set<std::string> columns = columnsOf(encodeBatch(batch, numbers));
    EXPECT_FALSE(columns.contains("device"));
    EXPECT_FALSE(columns.contains("stream"));
    batch.allocations[1].event.device = 1;
    batch.frees[0].event.device = 2;
    batch.replays[0].event.device = 3;
    batch.scopeBegins[0].device = 4;
    batch.scopeEnds[0].device = 5;
    batch.spans[0].device = 6;
    batch.spans[0].stream = 13;
    batch.counters[1].device = 7;
    batch.outOfMemory[0].event.device = 8;
    batch.of<base::KvPageEvent>()[0].device = 9;
    EventBatch back;
    for (const base::ColumnChunk& chunk : encodeBatch(batch, numbers)) {
        EXPECT_TRUE(decodeInto(chunk, back));
    }
    EXPECT_EQ(back.allocations[0].event.device, 0);
    EXPECT_EQ(back.allocations[1].event.device, 1);
    EXPECT_EQ(back.frees[0].event.device, 2);
    EXPECT_EQ(back.replays[0].event.device, 3);
    EXPECT_EQ(back.scopeBegins[0].device, 4);
    EXPECT_EQ(back.scopeEnds[0].device, 5);
    EXPECT_EQ(back.spans[0].device, 6);
    EXPECT_EQ(back.spans[0].stream, 13U);
    EXPECT_EQ(back.counters[1].device, 7);
    EXPECT_EQ(back.outOfMemory[0].event.device, 8);
    EXPECT_EQ(back.of<base::KvPageEvent>()[0].device, 9);
    EXPECT_EQ(pyramidLevel(pyramidStream(3, 0)), 3);
    EXPECT_EQ(pyramidLevel(pyramidStream(3, 2)), -1) << "of another device";
    EXPECT_EQ(pyramidLevel(pyramidStream(3, 2), 2), 3);
    EXPECT_EQ(pyramidLevel(pyramidStream(3, 0), 2), -1);
}

// A new kind of event is a struct, a stream and a facet; nothing else has to know it.

struct LossEvent {
    base::TimeNs time = 0;
    double loss = 0;
};

struct LossStream {
    using Event = LossEvent;
    static constexpr std::string_view kName = "training.loss";
    static void write(ColumnWriter& out, std::span<const Event> events) {
        out.timeColumn("time", events, [](const Event& e) { return e.time; });
        out.realColumn("loss", events, [](const Event& e) { return e.loss; });
    }
    static void read(const ChunkReader& in, std::vector<Event>& events) {
        const auto time = in.timeColumn("time");
        const auto loss = in.realColumn("loss");
        for (std::size_t row = 0; row < in.rows(); ++row) {
            events.push_back({time[row], loss[row]});
        }
    }
};

class LossFacet {
public:
    explicit LossFacet(const std::vector<LossEvent>& events) {
        for (const LossEvent& event : events) {
            all_.insertOrdered(event, [](const LossEvent& e) { return e.time; });
        }
    }
    double last() const { return all_[all_.size() - 1].loss; }

private:
    SharedVector<LossEvent> all_;
};

TEST(Streams, ANewKindOfEventIsAStructAStreamAndAFacet) {
    using Streams = StreamList<GapStream, LossStream>;
    Streams::Batch batch;
    std::get<std::vector<LossEvent>>(batch) = {{20, 0.5}, {10, 2.0}};
    ChunkNumbers numbers;
    std::vector<base::ColumnChunk> chunks;
    encodeEvents<Streams>(batch, numbers, chunks);
    ASSERT_EQ(chunks.size(), 1U);
    EXPECT_EQ(chunks[0].stream, "training.loss");
    EXPECT_EQ(chunks[0].timeEnd, 20);
    Streams::Batch back;
    EXPECT_TRUE(decodeEvents<Streams>(chunks[0], back));
    EXPECT_EQ(LossFacet(std::get<std::vector<LossEvent>>(back)).last(), 0.5);
    RunTimelineBuilder builder;
    builder.add(chunks[0]); // a program that does not know it yet opens the run all the same
    EXPECT_EQ(builder.snapshot()->end(), 1);
}

TEST(Streams, CutsLongStreamsButNoTemplate) {
    EventBatch batch;
    for (std::uint64_t i = 0; i < 2 * kRowsPerChunk + 1; ++i) {
        batch.frees.push_back({i, {static_cast<base::TimeNs>(i), i}});
    }
    auto step = std::make_shared<base::StepTemplate>();
    step->duration = 1;
    step->events.resize(kRowsPerChunk + 10, base::FreeEvent{0, 1});
    batch.templates = {step};
    ChunkNumbers numbers;
    std::map<std::string, std::vector<std::uint64_t>> rows;
    for (const base::ColumnChunk& chunk : encodeBatch(batch, numbers)) {
        EXPECT_EQ(chunk.sequence, rows[chunk.stream].size());
        rows[chunk.stream].push_back(chunk.rows);
    }
    EXPECT_EQ(rows["frees"], (std::vector<std::uint64_t>{kRowsPerChunk, kRowsPerChunk, 1}));
    EXPECT_EQ(rows["templates"], (std::vector<std::uint64_t>{kRowsPerChunk + 11}));
}

TEST(Streams, UnknownStreamsAreIgnored) {
    base::ColumnChunk chunk;
    chunk.stream = "kernels";
    EventBatch batch;
    EXPECT_FALSE(decodeInto(chunk, batch));
    RunTimelineBuilder builder;
    builder.add(chunk);
    EXPECT_EQ(builder.snapshot()->memory().events(), 0U);
}

TEST(Streams, PyramidLevelsHaveNumbers) {
    EXPECT_EQ(pyramidLevel("memory.pyramid.0"), 0);
    EXPECT_EQ(pyramidLevel("memory.pyramid.12"), 12);
    for (const char* other : {"memory.pyramid.", "memory.pyramid.x", "memory.pyramid.1x", "memory.pyramid.-1",
                              "memory.pyramid.16", "memory.pyramid.99999999999", "frees"}) {
        EXPECT_EQ(pyramidLevel(other), -1) << other;
    }
    EXPECT_EQ(
        inLoadOrder({"allocations", "memory.pyramid.0", "strings", "memory.pyramid.2", "templates"}),
        (std::vector<std::string>{"strings", "memory.pyramid.2", "memory.pyramid.0", "templates", "allocations"}));
}

/// Each replacement of a column by wrong values is refused with the stream's and the column's name.
TEST(Streams, RefusesValuesOutOfRange) {
    struct Case {
        std::string_view stream, column;
        base::Column wrong;
    };
    const auto wrong = [](std::string name, std::uint64_t value) {
        return base::encodeColumn(std::move(name), std::span<const std::uint64_t>(&value, 1));
    };
    const auto wrongSigned = [](std::string name, std::int64_t value) {
        return base::encodeColumn(std::move(name), std::span<const std::int64_t>(&value, 1));
    };
    EventBatch batch = fullBatch();
    batch.allocations.resize(1);
    batch.templates = {std::make_shared<base::StepTemplate>()};
    batch.counters.resize(1);
    ChunkNumbers numbers;
    const std::vector<base::ColumnChunk> chunks = encodeBatch(batch, numbers);
    const Case cases[] = {
        {"allocations", "category", wrong("category", 11)},
        {"allocations", "space", wrong("space", 3)},
        {"allocations", "rank", wrong("rank", 6)},
        {"allocations", "bytes", wrong("bytes", kMaxBlockBytes + 1)},
        {"allocations", "address", wrong("address", UINT64_MAX)},
        {"allocations", "order", wrong("order", std::uint64_t{1} << 40)},
        {"allocations", "time", wrongSigned("time", -1)},
        {"frees", "time", wrongSigned("time", INT64_MAX)},
        {"scopes.begin", "kind", wrong("kind", 5)},
        {"scopes.begin", "index", wrongSigned("index", std::int64_t{1} << 33)},
        {"replays", "end", wrongSigned("end", 9)},
        {"templates", "kind", wrong("kind", 6)},
        {"templates", "kind", wrong("kind", 1)},
        {"oom", "category", wrong("category", 11)},
    };
    for (const Case& damage : cases) {
        for (base::ColumnChunk chunk : chunks) {
            if (chunk.stream != damage.stream) {
                continue;
            }
            for (base::Column& column : chunk.columns) {
                if (column.name == damage.column) {
                    column = damage.wrong;
                }
            }
            EventBatch back;
            try {
                decodeInto(chunk, back);
                ADD_FAILURE() << damage.stream << ' ' << damage.column << " was taken";
            } catch (const base::BadInput& error) {
                EXPECT_NE(error.message().find(damage.column), std::string::npos) << error.message();
            }
        }
    }
}

/// Damaged chunks give BadInput or a timeline, never anything worse.
TEST(Streams, RandomDamageIsAnErrorAndNoCrash) {
    const std::vector<base::ColumnChunk> chunks = testing::record(testing::makeRun(3, {.steps = 600}), 3);
    ChunkNumbers numbers;
    std::vector<base::ColumnChunk> all = encodeBatch(fullBatch(), numbers);
    all.insert(all.end(), chunks.begin(), chunks.end());
    std::mt19937_64 random(11);
    int refused = 0;
    for (int round = 0; round < vitrine::test::repetitions(400); ++round) {
        std::vector<base::ColumnChunk> damaged = all;
        for (int hit = 0; hit < 3; ++hit) {
            base::ColumnChunk& chunk = damaged[random() % damaged.size()];
            base::Column& column = chunk.columns[random() % chunk.columns.size()];
            switch (random() % 6) {
            case 0:
                chunk.rows += random() % 5 == 0 ? random() : 1;
                break;
            case 1:
                column.data.resize(random() % (column.data.size() + 1));
                break;
            case 2:
                column.name += 'x';
                break;
            case 3:
                column.type = static_cast<base::ColumnType>(random() % 4);
                break;
            case 4:
                // The values of another column under this name.
                column.data = chunk.columns[random() % chunk.columns.size()].data;
                break;
            default:
                if (!column.data.empty()) {
                    column.data[random() % column.data.size()] ^= static_cast<std::byte>(1 + random() % 255);
                }
                break;
            }
        }
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : damaged) {
            try {
                builder.add(chunk);
            } catch (const base::BadInput&) {
                ++refused;
            }
        }
        try {
            const auto timeline = builder.snapshot();
            timeline->memory().query(0, timeline->end(), 100);
            timeline->memory().shapes(0, timeline->end(), 10, 100, round % 2 == 0);
            timeline->memory().aliveAt(timeline->end() / 2);
            timeline->memory().peaks(10);
            for (const ScopeRow& row : timeline->scopes().all()) {
                timeline->scopes().path(row.id);
            }
        } catch (const base::BadInput&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, vitrine::test::moreThan(200));
}

TEST(Streams, StoredPyramidsAnswerBeforeTheEvents) {
    const testing::RandomRun run = testing::makeRun(17, {.steps = 5000, .lateRecords = false});
    const std::vector<base::ColumnChunk> chunks = testing::record(run, 17);
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : chunks) {
        if (pyramidLevel(chunk.stream) >= 0) {
            builder.add(chunk);
        }
    }
    const auto first = builder.snapshot();
    EXPECT_FALSE(first->memory().complete());
    for (const base::ColumnChunk& chunk : chunks) {
        if (pyramidLevel(chunk.stream) < 0) {
            builder.add(chunk);
        }
    }
    const auto full = builder.snapshot();
    ASSERT_TRUE(full->memory().complete());
    EXPECT_EQ(first->memory().events(), full->memory().events());
    EXPECT_EQ(first->end(), full->end());
    const MemoryColumn stored = first->memory().peak(0, first->end());
    const MemoryColumn exact = full->memory().peak(0, full->end());
    EXPECT_EQ(stored.maxTotal, exact.maxTotal);
    EXPECT_EQ(stored.maxTime, exact.maxTime);
    EXPECT_EQ(stored.atMax, exact.atMax);
    EXPECT_EQ(first->memory().at(first->end()), full->memory().at(full->end()));
    const auto peaks = first->memory().peaks(1);
    ASSERT_EQ(peaks.size(), 1U);
    EXPECT_EQ(peaks, full->memory().peaks(1));
    // A column may show what happens within a leaf of it, and nothing else.
    const auto columns = first->memory().query(0, first->end(), 40);
    const auto exactColumns = full->memory().query(0, full->end(), 40);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        EXPECT_GE(columns[i].maxTotal, exactColumns[i].events > 0 ? exactColumns[i].maxTotal : 0);
        EXPECT_EQ(testing::Reference::total(columns[i].atMax), columns[i].maxTotal);
    }
}

TEST(Streams, StoredNodesAreThoseOfTheEvents) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(seed);
        const testing::RandomRun run = testing::makeRun(seed, {.steps = 3000, .lateRecords = false});
        const testing::Reference reference(run);
        const auto states = reference.states(true);
        std::map<int, std::uint64_t> covered;
        for (const base::ColumnChunk& chunk : testing::record(run, seed)) {
            const int level = pyramidLevel(chunk.stream);
            if (level < 0) {
                continue;
            }
            for (const PyramidNode& node : decodePyramid(chunk)) {
                ASSERT_EQ(node.firstEvent, covered[level]);
                covered[level] += node.count;
                ASSERT_LE(covered[level], reference.events.size());
                std::uint64_t low = UINT64_MAX;
                std::uint64_t high = 0;
                for (std::uint64_t i = node.firstEvent; i < node.firstEvent + node.count; ++i) {
                    low = std::min(low, testing::Reference::total(states[i + 1]));
                    high = std::max(high, testing::Reference::total(states[i + 1]));
                }
                EXPECT_EQ(node.minTotal, low);
                EXPECT_EQ(node.maxTotal, high);
                EXPECT_EQ(node.timeBegin, reference.events[node.firstEvent].time);
                EXPECT_EQ(node.timeEnd, reference.events[node.firstEvent + node.count - 1].time);
                EXPECT_EQ(node.atEnd, states[node.firstEvent + node.count]);
            }
        }
        for (const auto& [level, events] : covered) {
            EXPECT_EQ(events, reference.events.size()) << level;
        }
    }
}

} // namespace
} // namespace vitrine::profiler

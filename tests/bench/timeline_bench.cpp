// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Questions to a timeline of ten million memory events.

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "profiler/record/recorder.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {
namespace {

constexpr std::uint64_t kEvents = 10'000'000;

/// Weights that stay, KV pages that come now and then, activations of layers that come and go: the address view has
/// long thin, short tall and tiny blocks.
class EventStream {
public:
    base::TraceEvent next() {
        time_ += static_cast<base::TimeNs>(random_() % 4000);
        ++count_;
        if (count_ <= 500) {
            return birth(8'000'000, base::MemoryCategory::Weights, false);
        }
        if (count_ % 997 == 0) {
            return birth(131'072, base::MemoryCategory::KvCache, false);
        }
        if (alive_.size() > 24 || (!alive_.empty() && random_() % 2 == 0)) {
            const std::size_t victim = random_() % alive_.size();
            const std::uint64_t id = alive_[victim];
            alive_[victim] = alive_.back();
            alive_.pop_back();
            return base::FreeEvent{time_, id};
        }
        return birth(1 + random_() % 30'000'000, base::MemoryCategory::Activations, true);
    }

private:
    base::AllocationEvent birth(std::uint64_t bytes, base::MemoryCategory category, bool dies) {
        base::AllocationEvent event;
        event.time = time_;
        event.id = ++id_;
        event.bytes = bytes;
        event.address = dies ? (std::uint64_t{1} << 33) + random_() % 64 * 30'000'000 : top_;
        event.scope.value = id_ / 8;
        event.name.value = static_cast<std::uint32_t>(id_ % 300);
        event.category = category;
        event.dtype = 3;
        event.dimensions = 2;
        event.shape = {static_cast<std::int64_t>(id_ % 7), 2880};
        top_ += dies ? 0 : bytes;
        if (dies) {
            alive_.push_back(id_);
        }
        return event;
    }

    std::mt19937_64 random_{7};
    std::vector<std::uint64_t> alive_;
    base::TimeNs time_ = 0;
    std::uint64_t id_ = 0, top_ = 0, count_ = 0;
};

double residentMiB() {
    std::ifstream status("/proc/self/statm");
    double pages = 0;
    status >> pages >> pages;
    return pages * 4096 / 1048576;
}

struct Saved {
    std::vector<base::ColumnChunk> chunks;
    std::shared_ptr<const RunTimeline> timeline;
    double residentMiB = 0;

    Saved() {
        Recorder recorder;
        EventStream stream;
        for (std::uint64_t i = 0; i < kEvents; ++i) {
            recorder.record(stream.next());
            if (i % 500'000 == 0) {
                keep(recorder.drain());
            }
        }
        keep(recorder.finish());
        const double before = profiler::residentMiB();
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : chunks) {
            builder.add(chunk);
        }
        timeline = builder.snapshot();
        residentMiB = profiler::residentMiB() - before;
    }
    void keep(std::vector<base::ColumnChunk> some) {
        for (base::ColumnChunk& chunk : some) {
            chunks.push_back(std::move(chunk));
        }
    }
};

const Saved& saved() {
    static const Saved value;
    return value;
}

void windowOf(const benchmark::State& state, base::TimeNs& begin, base::TimeNs& end) {
    // Zoomed in by the argument, away from the middle.
    const RunTimeline& timeline = *saved().timeline;
    const base::TimeNs span = std::max<base::TimeNs>(1, timeline.end() / state.range(0));
    begin = (timeline.end() - span) / 3;
    end = begin + span;
}

void query(benchmark::State& state) {
    base::TimeNs begin = 0, end = 0;
    windowOf(state, begin, end);
    for (auto _ : state) {
        benchmark::DoNotOptimize(saved().timeline->memory().query(begin, end, 1920));
    }
    state.counters["residentMiB"] = saved().residentMiB;
}
BENCHMARK(query)->Arg(1)->Arg(10)->Arg(1000)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

void queryByEvent(benchmark::State& state) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(saved().timeline->memory().queryEvents(0, kEvents, 1920));
    }
}
BENCHMARK(queryByEvent)->Unit(benchmark::kMillisecond);

void aliveAt(benchmark::State& state) {
    const base::TimeNs time = saved().timeline->end() / 10 * state.range(0);
    for (auto _ : state) {
        benchmark::DoNotOptimize(saved().timeline->memory().aliveAt(time));
    }
}
BENCHMARK(aliveAt)->Arg(1)->Arg(5)->Arg(10)->Unit(benchmark::kMillisecond);

void findAllocation(benchmark::State& state) {
    const auto rows = saved().timeline->memory().allocations();
    std::size_t row = 0;
    for (auto _ : state) {
        row = (row + 1'000'003) % rows.size();
        benchmark::DoNotOptimize(saved().timeline->memory().findAllocation(rows[row].id));
    }
}
BENCHMARK(findAllocation)->Unit(benchmark::kMicrosecond);

void shapes(benchmark::State& state) {
    base::TimeNs begin = 0, end = 0;
    windowOf(state, begin, end);
    std::size_t drawn = 0;
    for (auto _ : state) {
        const auto found =
            saved().timeline->memory().shapes(begin, end, static_cast<double>(end - begin) / 1440, 10e9 / 262, true);
        drawn = found.size();
    }
    state.counters["shapes"] = static_cast<double>(drawn);
}
BENCHMARK(shapes)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void shapesStacked(benchmark::State& state) {
    base::TimeNs begin = 0, end = 0;
    windowOf(state, begin, end);
    saved().timeline->memory().stackedAddress(0);
    for (auto _ : state) {
        benchmark::DoNotOptimize(
            saved().timeline->memory().shapes(begin, end, static_cast<double>(end - begin) / 1440, 10e9 / 262, false));
    }
}
BENCHMARK(shapesStacked)->Arg(1)->Arg(1000)->Unit(benchmark::kMillisecond);

void openSaved(benchmark::State& state) {
    for (auto _ : state) {
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : saved().chunks) {
            builder.add(chunk);
        }
        benchmark::DoNotOptimize(builder.snapshot());
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kEvents));
}
BENCHMARK(openSaved)->Unit(benchmark::kMillisecond)->Iterations(1);

void firstPaint(benchmark::State& state) {
    for (auto _ : state) {
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : saved().chunks) {
            if (chunk.stream.starts_with("memory.pyramid.")) {
                builder.add(chunk);
            }
        }
        benchmark::DoNotOptimize(builder.snapshot()->memory().query(0, saved().timeline->end(), 1920));
    }
}
BENCHMARK(firstPaint)->Unit(benchmark::kMillisecond);

void stackLayout(benchmark::State& state) {
    for (auto _ : state) {
        state.PauseTiming();
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : saved().chunks) {
            builder.add(chunk);
        }
        const auto timeline = builder.snapshot();
        state.ResumeTiming();
        benchmark::DoNotOptimize(timeline->memory().shapes(0, timeline->end(), 1e6, 1e6, false));
    }
}
BENCHMARK(stackLayout)->Unit(benchmark::kMillisecond)->Iterations(1);

/// One frame of a live run: the last 20,000 events come, a snapshot is made and painted.
void liveFrame(benchmark::State& state) {
    Recorder recorder;
    EventStream stream;
    RunTimelineBuilder builder;
    const auto feed = [&](std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; ++i) {
            recorder.record(stream.next());
        }
        for (const base::ColumnChunk& chunk : recorder.drain()) {
            builder.add(chunk);
        }
    };
    for (int i = 0; i < 10; ++i) {
        feed(400'000);
    }
    builder.snapshot();
    for (auto _ : state) {
        state.PauseTiming();
        for (int i = 0; i < 20'000; ++i) {
            recorder.record(stream.next());
        }
        const auto chunks = recorder.drain();
        state.ResumeTiming();
        for (const base::ColumnChunk& chunk : chunks) {
            builder.add(chunk);
        }
        const auto snapshot = builder.snapshot();
        benchmark::DoNotOptimize(snapshot->memory().query(0, snapshot->end(), 1920));
    }
}
BENCHMARK(liveFrame)->Unit(benchmark::kMillisecond)->Iterations(60);

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Recording, encoding and the pyramid on one core: items a second are memory events.

#include "profiler/record/recorder.h"

#include <benchmark/benchmark.h>
#include <vector>

namespace vitrine::profiler {
namespace {

constexpr std::size_t kEvents = 10'000'000;
constexpr std::size_t kPerDrain = 500'000; // 2 million events a second, drained every 250 ms

/// A hash of the index, so that nothing repeats and compression has to work.
std::uint64_t mixed(std::size_t index) {
    std::uint64_t hash = (index + 1) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
    return hash ^ hash >> 31;
}

/// Births and deaths as decoding makes them: each block lives for some others.
base::TraceEvent eventAt(std::size_t index) {
    const auto time = static_cast<base::TimeNs>(index * 450 + mixed(index) % 400);
    if (index % 2 == 1 && index > 40) {
        return base::FreeEvent{time, (index - 39) / 2};
    }
    base::AllocationEvent event;
    event.time = time;
    event.id = index / 2;
    event.bytes = 4096 * (1 + mixed(index / 2 % 5000) % 300);
    event.address = (std::uint64_t{1} << 40) + (mixed(index) >> 20) % 1000 * 4096;
    event.scope.value = index / 10;
    event.name.value = static_cast<std::uint32_t>(index % 61);
    event.category = index % 3 == 0 ? base::MemoryCategory::Workspace : base::MemoryCategory::Activations;
    event.dtype = 3;
    event.dimensions = 2;
    event.shape = {static_cast<std::int64_t>(1 + index % 16), 2880};
    return event;
}

void ingest(benchmark::State& state) {
    std::vector<base::TraceEvent> events;
    events.reserve(kPerDrain);
    std::size_t bytes = 0;
    for (auto _ : state) {
        Recorder recorder;
        bytes = 0;
        const auto count = [&bytes](const std::vector<base::ColumnChunk>& chunks) {
            for (const base::ColumnChunk& chunk : chunks) {
                for (const base::Column& column : chunk.columns) {
                    bytes += column.data.size();
                }
            }
        };
        for (std::size_t first = 0; first < kEvents; first += kPerDrain) {
            state.PauseTiming();
            events.clear();
            for (std::size_t i = first; i < first + kPerDrain; ++i) {
                events.push_back(eventAt(i));
            }
            state.ResumeTiming();
            for (const base::TraceEvent& event : events) {
                recorder.record(event);
            }
            count(recorder.drain());
        }
        count(recorder.finish());
        if (recorder.lostRecords() != 0) {
            state.SkipWithError("records were lost");
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kEvents));
    state.counters["bytesPerEvent"] = static_cast<double>(bytes) / kEvents;
}
BENCHMARK(ingest)->Unit(benchmark::kMillisecond)->Iterations(1);

void recordOnly(benchmark::State& state) {
    std::vector<base::TraceEvent> events;
    for (std::size_t i = 0; i < kPerDrain; ++i) {
        events.push_back(eventAt(i));
    }
    Recorder recorder;
    for (auto _ : state) {
        for (const base::TraceEvent& event : events) {
            recorder.record(event);
        }
        state.PauseTiming();
        benchmark::DoNotOptimize(recorder.drain());
        state.ResumeTiming();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kPerDrain));
}
BENCHMARK(recordOnly)->Unit(benchmark::kMillisecond)->Iterations(5);

} // namespace
} // namespace vitrine::profiler

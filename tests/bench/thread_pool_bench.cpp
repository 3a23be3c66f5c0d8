// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What a loop costs beside its work.

#include "base/thread_pool.h"

#include <benchmark/benchmark.h>
#include <chrono>
#include <thread>

namespace vitrine::base {
namespace {

void loopOfEmptyPieces(benchmark::State& state) {
    ThreadPool pool(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        pool.parallelFor(1024, 1, [](std::int64_t begin, std::int64_t, int) { benchmark::DoNotOptimize(begin); });
    }
}
BENCHMARK(loopOfEmptyPieces)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

void loopAfterAPause(benchmark::State& state) {
    ThreadPool pool(2);
    for (auto _ : state) {
        state.PauseTiming();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        state.ResumeTiming();
        pool.parallelFor(1024, 1, [](std::int64_t begin, std::int64_t, int) { benchmark::DoNotOptimize(begin); });
    }
}
BENCHMARK(loopAfterAPause)->UseRealTime();

} // namespace
} // namespace vitrine::base

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the recorder pays for an event: its columns encoded, chunk after chunk, on one core.

#include "base/column_chunk.h"

#include <array>
#include <benchmark/benchmark.h>
#include <functional>
#include <random>

namespace vitrine::base {
namespace {

constexpr std::size_t kRows = 4096;
using Values = std::vector<std::int64_t>;

Values made(const std::function<std::int64_t(std::int64_t)>& value) {
    Values values(kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
        values[i] = value(static_cast<std::int64_t>(i));
    }
    return values;
}

/// Columns as a run's allocations have them: rising times and ids, random addresses, few sizes, small enumerations.
std::vector<Values> allocationColumns() {
    static constexpr std::array<std::int64_t, 7> kSizes = {2359296, 5898240, 184320, 11520, 46080, 1024, 512};
    std::mt19937_64 random(1);
    const auto below = [&](std::int64_t limit) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    std::int64_t time = 123456789012;
    return {made([&](std::int64_t) { return time += 200 + below(3000); }),
            made([](std::int64_t i) { return 1000000 + i; }),
            made([&](std::int64_t) { return 0x7f0000000000 + 512 * below(4000000); }),
            made([&](std::int64_t) { return kSizes[static_cast<std::size_t>(below(7))]; }),
            made([](std::int64_t i) { return 100 + i / 3; }),
            made([](std::int64_t i) { return i * 7 % 40; }),
            made([](std::int64_t i) { return i * 7 % 11; }),
            made([](std::int64_t) { return 0; }),
            made([](std::int64_t i) { return i % 3; }),
            made([](std::int64_t i) { return 2 + i % 3; }),
            made([](std::int64_t i) { return 2880 << (i % 4); }),
            made([&](std::int64_t) { return below(100000000); })};
}

void encodeAllocations(benchmark::State& state) {
    const std::vector<Values> columns = allocationColumns();
    std::size_t bytes = 0;
    for (auto _ : state) {
        bytes = 0;
        for (const Values& values : columns) {
            bytes += encodeColumn("v", std::span<const std::int64_t>(values)).data.size();
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRows));
    state.counters["bytes_per_event"] = static_cast<double>(bytes) / kRows;
}
BENCHMARK(encodeAllocations);

void decodeAllocations(benchmark::State& state) {
    std::vector<Column> columns;
    for (const Values& values : allocationColumns()) {
        columns.push_back(encodeColumn("v", std::span<const std::int64_t>(values)));
    }
    for (auto _ : state) {
        for (const Column& column : columns) {
            benchmark::DoNotOptimize(decodeInt64(column, kRows));
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRows));
}
BENCHMARK(decodeAllocations);

} // namespace
} // namespace vitrine::base

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/range_statistics.h"

#include <gtest/gtest.h>

#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;
using testing::kGiB;

TEST(RangeStatistics, MeasuresChangePeakMeanAndCounts) {
    testing::ScriptedRun run;
    run.time = 1'000'000'000;
    run.allocate("a", MemoryCategory::Weights, 2 * kGiB);
    run.time = 2'000'000'000;
    const std::uint64_t b = run.allocate("b", MemoryCategory::Activations, 4 * kGiB);
    run.time = 3'000'000'000;
    run.free(b);
    run.time = 4'000'000'000;
    const auto timeline = run.timeline();
    const RangeStatistics range = rangeStatistics(*timeline, 0, 4'000'000'000);
    EXPECT_EQ(range.change, static_cast<std::int64_t>(2 * kGiB));
    EXPECT_EQ(range.peak, 6 * kGiB);
    EXPECT_EQ(range.peakTime, 2'000'000'000);
    EXPECT_DOUBLE_EQ(range.mean, static_cast<double>(10 * kGiB) / 4);
    EXPECT_EQ(range.births, 2U);
    EXPECT_EQ(range.deaths, 1U);
    const RangeStatistics back = rangeStatistics(*timeline, 4'000'000'000, 2'500'000'000);
    EXPECT_EQ(back.begin, 2'500'000'000);
    EXPECT_EQ(back.change, -static_cast<std::int64_t>(4 * kGiB));
    EXPECT_EQ(rangeStatistics(*timeline, 5, 5).mean, 0);
}

} // namespace
} // namespace vitrine::profiler

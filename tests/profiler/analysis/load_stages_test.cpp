// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/load_stages.h"

#include <gtest/gtest.h>

#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;
using testing::kMiB;

TEST(LoadStages, AddUpTheSpansOfEachLoad) {
    testing::ScriptedRun run;
    for (int load = 0; load < 2; ++load) {
        const base::TimeNs start = run.time;
        run.begin(base::ScopeKind::Phase, "load");
        run.span("Read", "a", start, start + 1000, 4000);
        run.span("Read", "b", start + 500, start + 1500, 4000); // two readers at once
        run.span("Read", "c", start + 2000, start + 2500, 2000);
        run.span("Expand", "a", start + 1000, start + 3000, 40'000);
        run.allocate("model.layers.0.mlp.experts.gate_up_proj_blocks", MemoryCategory::Weights, 8 * kMiB,
                     kernels::DType::U8);
        const std::uint64_t staging = run.allocate("load.staging", MemoryCategory::Workspace, kMiB);
        run.time = start + 3000;
        run.free(staging);
        run.end();
        run.time += 1000;
    }
    const auto timeline = run.timeline();
    EXPECT_EQ(loadCount(*timeline), 2U);
    const LoadStages load = loadStages(*timeline, 0);
    EXPECT_EQ(load.begin, 0);
    EXPECT_EQ(load.end, 3000);
    ASSERT_EQ(load.stages.size(), 2U);
    EXPECT_EQ(load.stages[0].name, "Read");
    EXPECT_EQ(load.stages[0].bytes, 10'000U);
    EXPECT_EQ(load.stages[0].spans, 3U);
    EXPECT_EQ(load.stages[0].busy, 2000);
    EXPECT_DOUBLE_EQ(load.stages[0].bytesPerSecond, 10'000 / 2e-6);
    EXPECT_EQ(load.stages[1].name, "Expand");
    EXPECT_EQ(load.peak.maxTotal, 9 * kMiB);
    EXPECT_EQ(load.resident[static_cast<std::size_t>(MemoryCategory::Weights)], 8 * kMiB);
    EXPECT_EQ(load.resident[static_cast<std::size_t>(MemoryCategory::Workspace)], 0U);
    ASSERT_EQ(load.parts.size(), 1U);
    EXPECT_EQ(load.parts[0].name, "experts, MXFP4");
    EXPECT_EQ(loadStages(*timeline, 1).stages[0].bytes, 10'000U);
    EXPECT_EQ(loadStages(*timeline, 1).begin, 4000);
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/kernel_table.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {
namespace {

/// Two steps: a norm of one kernel and an expert product of two that overlap, then a kernel without an op.
class KernelTableTest : public testing::Test {
protected:
    void scope(std::uint64_t id, std::uint64_t parent, base::ScopeKind kind, const char* name, std::int32_t index,
               base::TimeNs begin, base::TimeNs end, std::uint64_t bytes = 0, std::uint64_t flops = 0,
               base::MemoryCategory category = base::MemoryCategory::Other) {
        recorder_.record(
            base::ScopeBeginEvent{begin, {id}, {parent}, kind, recorder_.intern(name), index, 1, 0, category});
        recorder_.record(base::ScopeEndEvent{end, {id}, bytes, flops});
    }
    void kernel(const char* name, std::uint64_t scopeId, base::TimeNs begin, base::TimeNs end,
                const char* lane = "Kernels") {
        recorder_.record(base::SpanEvent{begin, end, recorder_.intern(lane), recorder_.intern(name), {scopeId}, 0, 0});
    }
    std::shared_ptr<const RunTimeline> timeline() {
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : recorder_.finish()) {
            builder.add(chunk);
        }
        return builder.snapshot();
    }
    void twoSteps() {
        for (std::int32_t step = 0; step < 2; ++step) {
            const auto id = static_cast<std::uint64_t>(10 * (step + 1));
            const base::TimeNs at = 1000 * step;
            scope(id, 0, base::ScopeKind::Step, "decode", step, at, at + 500);
            scope(id + 1, id, base::ScopeKind::Op, "RmsNorm", -1, at, at + 10, 4000, 100);
            scope(id + 2, id, base::ScopeKind::Op, "ExpertMlp", -1, at + 10, at + 30, 90'000, 800);
            kernel("norm", id + 1, at + 100, at + 120 + 10 * step);
            kernel("gate_up", id + 2, at + 200, at + 300);
            kernel("down", id + 2, at + 250, at + 350);
            kernel("fill", id, at + 400, at + 410);
            kernel("a copy", id, at, at + 500, "Copies");
        }
    }

    Recorder recorder_;
};

TEST_F(KernelTableTest, AnOpSaysItsCategory) {
    using base::MemoryCategory;
    scope(1, 0, base::ScopeKind::Op, "MatmulWeightGradient", -1, 0, 10, 0, 0, MemoryCategory::Gradients);
    scope(2, 0, base::ScopeKind::Op, "Backwards", -1, 10, 20, 0, 0, MemoryCategory::Activations);
    scope(3, 0, base::ScopeKind::Op, "GroupedInputGradient", -1, 20, 30);
    scope(4, 0, base::ScopeKind::Op, "RmsNorm", -1, 30, 40);
    for (std::uint64_t op = 1; op <= 5; ++op) {
        const std::string name = "kernel " + std::to_string(op);
        kernel(name.c_str(), op == 5 ? 0 : op, static_cast<base::TimeNs>(op), static_cast<base::TimeNs>(op) + 1);
    }
    const KernelTable table = kernelTable(*timeline());
    const MemoryCategory expected[] = {MemoryCategory::Gradients, MemoryCategory::Activations,
                                       MemoryCategory::Gradients, // an earlier recording: its name is looked at
                                       MemoryCategory::Activations, MemoryCategory::Other};
    for (std::size_t op = 0; op < std::size(expected); ++op) {
        const auto row = std::ranges::find(table.kernels, "kernel " + std::to_string(op + 1), &KernelRow::name);
        ASSERT_NE(row, table.kernels.end());
        EXPECT_EQ(row->category, expected[op]) << row->op;
    }
}

TEST_F(KernelTableTest, CountsKernelsByNameAndOp) {
    twoSteps();
    const KernelTable table = kernelTable(*timeline());
    EXPECT_EQ(table.launches, 8U);
    EXPECT_EQ(table.total, 2 * (100 + 100 + 10) + 20 + 30);
    EXPECT_EQ(table.busy, 2 * (150 + 10) + 20 + 30);
    EXPECT_EQ(table.attributed, 2 * 150 + 20 + 30);
    EXPECT_NEAR(table.attribution(), 350.0 / 370, 1e-12);
    ASSERT_EQ(table.kernels.size(), 4U);
    const auto norm = std::ranges::find(table.kernels, "norm", &KernelRow::name);
    ASSERT_NE(norm, table.kernels.end());
    EXPECT_EQ(norm->op, "RmsNorm");
    EXPECT_EQ(norm->launches, 2U);
    EXPECT_EQ(norm->total, 50);
    EXPECT_EQ(norm->shortest, 20);
    EXPECT_EQ(norm->longest, 30);
    EXPECT_EQ(norm->mean(), 25);
    EXPECT_EQ(norm->bytes, 8000U);
    EXPECT_NEAR(norm->bytesPerSecond(), 8000 / 50e-9, 1);
    EXPECT_NEAR(norm->share, 50.0 / 470, 1e-12);
    const auto product = std::ranges::find(table.kernels, "down", &KernelRow::name);
    EXPECT_EQ(product->bytes, 0U) << "its op launched another kernel too";
    const auto fill = std::ranges::find(table.kernels, "fill", &KernelRow::name);
    EXPECT_EQ(fill->op, "");
    EXPECT_GE(table.kernels[0].total, table.kernels[1].total);
}

TEST_F(KernelTableTest, OpsHaveTheUnionOfTheirKernelsTimesAndTheirCost) {
    twoSteps();
    const KernelTable table = kernelTable(*timeline());
    ASSERT_EQ(table.ops.size(), 2U);
    EXPECT_EQ(table.ops[0].op, "ExpertMlp");
    EXPECT_EQ(table.ops[0].calls, 2U);
    EXPECT_EQ(table.ops[0].launches, 4U);
    EXPECT_EQ(table.ops[0].busy, 300);
    EXPECT_EQ(table.ops[0].bytes, 180'000U);
    EXPECT_NEAR(table.ops[0].bytesPerSecond(), 180'000 / 300e-9, 1);
    EXPECT_NEAR(table.ops[0].flopsPerSecond(), 1600 / 300e-9, 1);
    EXPECT_NEAR(table.ops[0].share, 300.0 / 370, 1e-12);
}

TEST_F(KernelTableTest, StepsShowWhenTheDeviceWaited) {
    twoSteps();
    const KernelTable table = kernelTable(*timeline());
    ASSERT_EQ(table.steps.size(), 2U);
    EXPECT_EQ(table.steps[1].step, 1);
    EXPECT_EQ(table.steps[1].begin, 1100);
    EXPECT_EQ(table.steps[1].end, 1410);
    EXPECT_EQ(table.steps[1].busy, 30 + 150 + 10);
    EXPECT_EQ(table.steps[1].idle(), 310 - 190);
    EXPECT_EQ(table.steps[1].launches, 4U);
}

TEST_F(KernelTableTest, ARangeTakesWhatBeginsInIt) {
    twoSteps();
    const auto run = timeline();
    EXPECT_EQ(kernelTable(*run, 0, 200).launches, 1U);
    EXPECT_EQ(kernelTable(*run, 200, 1000).launches, 3U);
    EXPECT_EQ(kernelTable(*run, 1000).launches, 4U);
    const KernelTable none = kernelTable(*run, 5000, 6000);
    EXPECT_EQ(none.launches, 0U);
    EXPECT_EQ(none.attribution(), 1);
}

} // namespace
} // namespace vitrine::profiler

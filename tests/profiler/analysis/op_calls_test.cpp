// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/op_calls.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {
namespace {

class OpCallsTest : public ::testing::Test {
protected:
    void scope(std::uint64_t id, std::uint64_t parent, base::ScopeKind kind, const char* name, base::TimeNs begin,
               base::TimeNs end, std::uint64_t bytes = 0, std::uint64_t flops = 0) {
        recorder_.record(base::ScopeBeginEvent{begin, {id}, {parent}, kind, recorder_.intern(name), 0, 4, 0, {}});
        recorder_.record(base::ScopeEndEvent{end, {id}, bytes, flops});
    }
    void kernel(std::uint64_t scopeId, base::TimeNs begin, base::TimeNs end) {
        recorder_.record(
            base::SpanEvent{begin, end, recorder_.intern("Kernels"), recorder_.intern("kernel"), {scopeId}, 0, 0});
    }
    MeasuredOps measured() {
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : recorder_.finish()) {
            builder.add(chunk);
        }
        return measuredOps(*builder.snapshot());
    }
    static const OpCalls* find(const MeasuredOps& ops, const char* name) {
        const auto found = std::ranges::find(ops.calls, name, &OpCalls::op);
        return found == ops.calls.end() ? nullptr : &*found;
    }

    Recorder recorder_;
};

TEST_F(OpCallsTest, OnACpuOpsTakeTheTimeOfTheirScopes) {
    for (std::uint64_t step = 0; step < 3; ++step) {
        const base::TimeNs at = static_cast<base::TimeNs>(step) * 10'000;
        scope(10 * step + 1, 0, base::ScopeKind::Step, "decode", at, at + 9000);
        scope(10 * step + 2, 10 * step + 1, base::ScopeKind::Op, "Matmul", at + 1000, at + 5000, 100, 200);
        scope(10 * step + 3, 10 * step + 1, base::ScopeKind::Op, "Rope", at + 6000, at + 8000, 10, 20);
    }
    const MeasuredOps ops = measured();
    ASSERT_NE(find(ops, "Matmul"), nullptr);
    EXPECT_NEAR(find(ops, "Matmul")->seconds, 4e-6, 1e-12);
    EXPECT_EQ(find(ops, "Matmul")->calls, 3U);
    EXPECT_EQ(find(ops, "Matmul")->bytes, 100U);
    EXPECT_NEAR(ops.launched.gap, 1e-6, 1e-12);
    EXPECT_NEAR(ops.launched.step, 1e-6, 1e-12) << "9 us, of which 6 are ops and 2 are between them";
    EXPECT_EQ(ops.launched.host, 0);
    EXPECT_EQ(ops.replayed.steps, 0U);
}

TEST_F(OpCallsTest, KernelsThatOverlapCountOnce) {
    scope(1, 0, base::ScopeKind::Step, "prefill", 0, 10'000);
    scope(2, 1, base::ScopeKind::Op, "A", 0, 100, 5, 5);
    scope(3, 1, base::ScopeKind::Op, "B", 200, 300, 7, 7);
    kernel(2, 1000, 4000);
    kernel(3, 3000, 6000);
    const MeasuredOps ops = measured();
    EXPECT_NEAR(find(ops, "A")->seconds, 3e-6, 1e-12);
    EXPECT_NEAR(find(ops, "B")->seconds, 2e-6, 1e-12);
    EXPECT_NEAR(ops.launched.host, 200e-9, 1e-12);
    EXPECT_GT(ops.launched.first, 0) << "the first step of its name took longer than its kernels";
}

TEST_F(OpCallsTest, UntracedStepsSayHowLongTheKernelsOfAGraphReallyTake) {
    for (std::uint64_t step = 0; step < 9; ++step) {
        const base::TimeNs at = static_cast<base::TimeNs>(step) * 100'000;
        const base::TimeNs length = step == 0 ? 50'000 : step == 1 ? 20'000 : step == 3 ? 4'000 : 10'000;
        scope(10 * step + 1, 0, base::ScopeKind::Step, "decode", at, at + length);
        scope(10 * step + 2, 10 * step + 1, base::ScopeKind::Op, "A", at, at + 10, 5, 5);
        scope(10 * step + 3, 10 * step + 1, base::ScopeKind::Op, "B", at + 20, at + 30, 7, 7);
    }
    kernel(12, 100'000, 110'000);
    kernel(13, 110'000, 120'000);
    const MeasuredOps ops = measured();
    EXPECT_NEAR(find(ops, "A")->seconds, 5e-6, 1e-12) << "together they fill an untraced step of 10 us";
    EXPECT_NEAR(find(ops, "B")->seconds, 5e-6, 1e-12);
    EXPECT_EQ(ops.replayed.steps, 1U);
    EXPECT_NEAR(ops.replayed.first, 44e-6, 1e-9) << "40 of the first step, 10 of the second, -6 of the fourth";
}

TEST_F(OpCallsTest, StepsInWhichSomethingWasTracedDoNotSayWhatIsUsual) {
    for (std::uint64_t step = 0; step < 25; ++step) { // most steps are traced, and a tenth longer for it
        const base::TimeNs at = static_cast<base::TimeNs>(step) * 100'000;
        scope(10 * step + 1, 0, base::ScopeKind::Step, "decode", at, at + (step < 20 ? 11'000 : 10'000));
        recorder_.record(base::ScopeBeginEvent{
            at, {10 * step + 3}, {10 * step + 1}, base::ScopeKind::Layer, recorder_.intern("layer"), 7, 4, 0, {}});
        scope(10 * step + 2, 10 * step + 3, base::ScopeKind::Op, "A", at, at + 10, 5, 5);
        recorder_.record(base::ScopeEndEvent{at + 20, {10 * step + 3}, 0, 0});
        if (step < 20 && step != 1) {
            recorder_.record(
                base::SpanEvent{at, at + 11'000, recorder_.intern("Graphs"), recorder_.intern("graph"), {}, 0, 0});
        }
    }
    kernel(12, 100'000, 111'000);
    const MeasuredOps ops = measured();
    ASSERT_NE(find(ops, "A"), nullptr);
    EXPECT_NEAR(find(ops, "A")->seconds, 10e-6, 1e-12);
    EXPECT_EQ(ops.replayed.layers, ops.replayed.first > 0 ? 8 : 0) << "numbers of layers begin at 0";
}

TEST_F(OpCallsTest, LibrariesThatWakeUpAreNamed) {
    // On the host: A takes 5 ms the first time, everything else 20 us.
    const std::vector<base::TimeNs> begins{0, 5'000'000, 5'020'000, 5'040'000, 5'060'000, 5'080'000};
    scope(1, 0, base::ScopeKind::Step, "prefill", 0, 5'200'000);
    for (std::uint64_t i = 0; i < begins.size(); ++i) {
        const base::TimeNs at = begins[i];
        scope(2 + i, 1, base::ScopeKind::Op, i % 2 == 0 ? "A" : "B", at, at + 10, 5, 5);
        kernel(2 + i, at + (i == 0 ? 4'990'000 : 10'000), at + (i == 0 ? 5'000'000 : 20'000));
    }
    const MeasuredOps ops = measured();
    ASSERT_EQ(ops.wakes.size(), 1U);
    EXPECT_EQ(ops.wakes[0].op, "A");
    EXPECT_NEAR(ops.wakes[0].seconds, 4.98e-3, 1e-6);
    EXPECT_LT(ops.launched.first, 0.2e-3) << "the wake is not counted twice";
}

TEST_F(OpCallsTest, ALibraryThatWakesUpWaitsForTheOpsBefore) {
    // B is launched right after A, and its library wakes up when A's 30 ms have passed; that takes 1 ms.
    scope(1, 0, base::ScopeKind::Step, "prefill", 0, 32'000'000);
    const std::vector<base::TimeNs> begins{0, 20'000, 40'000, 60'000, 31'000'000, 31'020'000};
    for (std::uint64_t i = 0; i < begins.size(); ++i) {
        scope(2 + i, 1, base::ScopeKind::Op, i == 3 ? "B" : "A", begins[i], begins[i] + 10, 5, 5);
    }
    kernel(2, 10'000, 20'000);
    kernel(3, 20'000, 30'000);
    kernel(4, 40'000, 30'000'000);
    kernel(5, 31'000'000, 31'010'000);
    kernel(6, 31'010'000, 31'020'000);
    kernel(7, 31'030'000, 31'040'000);
    const MeasuredOps ops = measured();
    ASSERT_EQ(ops.wakes.size(), 1U);
    EXPECT_EQ(ops.wakes[0].op, "B");
    EXPECT_NEAR(ops.wakes[0].seconds, 1e-3, 0.05e-3);
}

TEST_F(OpCallsTest, TimesOfAnotherReplayAreLeftOut) {
    for (std::uint64_t step = 0; step < 9; ++step) {
        const base::TimeNs at = static_cast<base::TimeNs>(step) * 10'000;
        scope(10 * step + 1, 0, base::ScopeKind::Step, "decode", at, at + 10'000);
        scope(10 * step + 2, 10 * step + 1, base::ScopeKind::Op, "A", at, at + 10, 5, 5);
    }
    kernel(12, 11'000, 15'000);
    kernel(22, 22'000, 87'000); // its end was written by a later replay
    const MeasuredOps ops = measured();
    ASSERT_NE(find(ops, "A"), nullptr);
    EXPECT_EQ(find(ops, "A")->calls, 1U);
    EXPECT_NEAR(find(ops, "A")->seconds, 4e-6, 1e-12);
}

TEST_F(OpCallsTest, StepsThatWereLaunchedAheadDoNotCountTheirWait) {
    // The second step is launched while the first one runs.
    scope(1, 0, base::ScopeKind::Step, "train", 0, 10'000);
    scope(2, 1, base::ScopeKind::Op, "A", 0, 10, 5, 5);
    scope(11, 0, base::ScopeKind::Step, "train", 2000, 20'000);
    scope(12, 11, base::ScopeKind::Op, "A", 2000, 2010, 5, 5);
    kernel(2, 100, 10'000);
    kernel(12, 10'000, 19'000);
    const MeasuredOps ops = measured();
    EXPECT_EQ(ops.trained.steps, 2U);
    EXPECT_NEAR(ops.trained.step, 1e-6, 1e-7);
}

TEST_F(OpCallsTest, ARunWithoutStepsHasNothing) {
    const MeasuredOps ops = measured();
    EXPECT_TRUE(ops.calls.empty());
    EXPECT_EQ(ops.launched.steps + ops.replayed.steps + ops.trained.steps, 0U);
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/op_times.h"

#include <gtest/gtest.h>

#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

/// An op from `begin` to `end`, with another inside of it where `inner` is set.
void op(testing::ScriptedRun& run, const char* name, base::TimeNs begin, base::TimeNs end, bool inner = false) {
    run.time = begin;
    run.begin(base::ScopeKind::Op, name);
    if (inner) {
        run.time = begin + 1;
        run.begin(base::ScopeKind::Op, "Inner");
        run.time = end - 1;
        run.end();
    }
    run.time = end;
    run.end();
}

TEST(OpTimes, SplitsAPhaseByItsOps) {
    testing::ScriptedRun run;
    op(run, "Matmul", 0, 50); // before the phase
    run.time = 100;
    run.begin(base::ScopeKind::Phase, "prefill");
    op(run, "Matmul", 110, 140, true);
    op(run, "RmsNorm", 140, 150);
    op(run, "Matmul", 160, 190);
    run.time = 200;
    run.end();
    op(run, "Matmul", 300, 400);
    const PhaseOps found = phaseOps(*run.timeline(), "prefill");
    ASSERT_EQ(found.ops.size(), 2U);
    EXPECT_EQ(found.ops[0].name, "Matmul");
    EXPECT_EQ(found.ops[0].time, 60);
    EXPECT_EQ(found.ops[0].calls, 2);
    EXPECT_EQ(found.ops[1].time, 10);
    EXPECT_EQ(found.other, 30);
    EXPECT_EQ(found.total, 100);
    EXPECT_TRUE(phaseOps(*run.timeline(), "decode").ops.empty());
}

} // namespace
} // namespace vitrine::profiler

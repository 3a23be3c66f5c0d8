// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/timeline_align.h"

#include <gtest/gtest.h>

#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;
using testing::kGiB;

std::shared_ptr<const RunTimeline> run(base::TimeNs load, base::TimeNs decode, std::uint64_t weights, bool warmUp) {
    testing::ScriptedRun run;
    run.begin(base::ScopeKind::Phase, "load");
    run.allocate("w", MemoryCategory::Weights, weights);
    run.time += load;
    run.end();
    if (warmUp) {
        run.begin(base::ScopeKind::Phase, "warm-up");
        run.time += 50;
        run.end();
    }
    run.begin(base::ScopeKind::Phase, "decode");
    for (int step = 0; step < 4; ++step) {
        run.begin(base::ScopeKind::Step, "decode", step);
        const std::uint64_t id = run.allocate("x", MemoryCategory::Activations, kGiB);
        run.time += decode / 4;
        run.free(id);
        run.end();
    }
    run.end();
    return run.timeline();
}

TEST(TimelineAlign, PutsEqualPhasesOverEachOther) {
    const auto a = run(1000, 400, 10 * kGiB, false);
    const auto b = run(500, 800, 2 * kGiB, true);
    const Alignment alignment = align(*a, *b, AlignBy::Phase);
    ASSERT_EQ(alignment.segments().size(), 4U);
    EXPECT_EQ(alignment.segments()[0].name, "load");
    // Both are stretched to the mean: load to 750, decode to 600; the warm-up of 50 gets 8 % of 1400.
    EXPECT_EQ(alignment.segments()[0].length, 750);
    EXPECT_EQ(alignment.segments()[1].name, "warm-up");
    EXPECT_EQ(alignment.segments()[1].length, 112);
    EXPECT_FALSE(alignment.segments()[1].a.has_value());
    EXPECT_EQ(alignment.segments()[2].name, "decode");
    EXPECT_EQ(alignment.segments()[2].position, 862);
    EXPECT_EQ(alignment.timeInA(375), 500);
    EXPECT_EQ(alignment.timeInB(375), 250);
    EXPECT_FALSE(alignment.timeInA(800).has_value());
    EXPECT_EQ(alignment.timeInB(750 + 56), 525);
    EXPECT_EQ(alignment.timeInA(862 + 300), 1000 + 200);
    EXPECT_EQ(alignment.timeInB(862 + 300), 550 + 400);
    EXPECT_EQ(alignment.positionOfA(1200), 1162);
    EXPECT_EQ(alignment.positionOfB(950), 1162);
    EXPECT_EQ(alignment.positionOfB(250), 375);
    const auto columns = difference(*a, *b, alignment, 0, alignment.length(), 10);
    ASSERT_EQ(columns.size(), 10U);
    EXPECT_EQ(columns[0].change, -static_cast<std::int64_t>(8 * kGiB));
    EXPECT_EQ(columns[9].a->maxTotal, 11 * kGiB);
    EXPECT_EQ(columns[9].b->maxTotal, 3 * kGiB);
}

TEST(TimelineAlign, PutsEqualStepsOverEachOther) {
    const auto a = run(1000, 400, kGiB, false);
    const auto b = run(500, 800, kGiB, false);
    const Alignment alignment = align(*a, *b, AlignBy::Step);
    int steps = 0;
    for (const AlignedSegment& segment : alignment.segments()) {
        if (segment.name.starts_with("decode step")) {
            ++steps;
            EXPECT_EQ(segment.length, 150);
            EXPECT_TRUE(segment.a && segment.b);
        }
    }
    EXPECT_EQ(steps, 4);
}

TEST(TimelineAlign, ByTimeNothingIsStretched) {
    const auto a = run(1000, 400, kGiB, false);
    const auto b = run(500, 400, kGiB, false);
    const Alignment alignment = align(*a, *b, AlignBy::Time);
    EXPECT_EQ(alignment.length(), a->end());
    EXPECT_EQ(alignment.timeInA(700), 700);
    EXPECT_EQ(alignment.timeInB(700), 700);
    EXPECT_FALSE(alignment.timeInB(1200).has_value());
    RunTimelineBuilder builder;
    const auto empty = builder.snapshot();
    EXPECT_EQ(align(*a, *empty, AlignBy::Phase).timeInA(3), 3);
}

TEST(TimelineAlign, SaysThatAPeakOfAnIncompleteRunIsUncertain) {
    const auto whole = run(10, 40, kGiB, false);
    testing::ScriptedRun script;
    script.record(base::GapEvent{5, 6, 10, 10});
    const auto cut = script.timeline();
    EXPECT_EQ(lossSentence(*whole, *cut), "Records of B were lost, so its peak is uncertain.");
    EXPECT_EQ(lossSentence(*whole, *whole), "");
    EXPECT_EQ(lossSentence(*cut, *cut), "Records of A and B were lost, so both peaks are uncertain.");
}

} // namespace
} // namespace vitrine::profiler

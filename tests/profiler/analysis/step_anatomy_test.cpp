// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/step_anatomy.h"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "tests/profiler/analysis/training_step_script.h"

namespace vitrine::profiler {
namespace {

using testing::kMiB;
using testing::TrainingStepScript;

StepAnatomy anatomyOf(const TrainingStepScript& script) {
    const auto timeline = script.timeline();
    return stepAnatomy(*timeline, 1000, timeline->end());
}

std::vector<TrainingPhase> kindsOf(const StepAnatomy& step) {
    std::vector<TrainingPhase> kinds;
    for (const StepPhase& phase : step.phases) {
        kinds.push_back(phase.kind);
    }
    return kinds;
}

TEST(StepAnatomy, PhasesFollowEachOtherFromBeginToEnd) {
    const StepAnatomy step = anatomyOf({.chunks = 4});
    EXPECT_EQ(kindsOf(step), (std::vector{TrainingPhase::Forward, TrainingPhase::Loss, TrainingPhase::Backward,
                                          TrainingPhase::Optimizer}));
    EXPECT_EQ(step.phases.front().begin, step.begin);
    for (std::size_t i = 1; i < step.phases.size(); ++i) {
        EXPECT_EQ(step.phases[i].begin, step.phases[i - 1].end);
    }
    EXPECT_EQ(step.phases.back().end, step.end);
    EXPECT_EQ(step.phases[1].items, 4U);
    EXPECT_EQ(step.tokens, 4096);
}

TEST(StepAnatomy, TheSplitAtThePeakAddsUpToTheTotal) {
    const StepAnatomy step = anatomyOf({});
    EXPECT_EQ(step.peak.maxTotal, (50 + 30 + 240) * kMiB);
    EXPECT_EQ(std::accumulate(step.peak.atMax.begin(), step.peak.atMax.end(), std::uint64_t{0}), step.peak.maxTotal);
    std::uint64_t held = 0;
    for (const HeldSet& set : step.held) {
        held += set.bytes;
    }
    EXPECT_EQ(held, step.peak.maxTotal);
    EXPECT_EQ(step.phases[step.peakPhase].kind, TrainingPhase::Loss);
}

TEST(StepAnatomy, TheCauseIsWhatIsLargerThanAtTheNextPeak) {
    const StepAnatomy whole = anatomyOf({});
    ASSERT_NE(whole.cause(), nullptr);
    EXPECT_EQ(whole.cause()->category, base::MemoryCategory::Logits);
    EXPECT_EQ(whole.cause()->bytes, 240 * kMiB);
    ASSERT_TRUE(whole.nextPhase.has_value());
    EXPECT_EQ(whole.phases[*whole.nextPhase].kind, TrainingPhase::Backward);
    const StepAnatomy chunked = anatomyOf({.chunks = 8});
    EXPECT_EQ(chunked.phases[chunked.peakPhase].kind, TrainingPhase::Backward);
    EXPECT_EQ(chunked.cause()->kind, "mlp normed gradient");
}

TEST(StepAnatomy, ALayerRecomputedFirstIsOneItemWithThreeParts) {
    const StepAnatomy step = anatomyOf({.tiles = 5});
    const StepPhase& backward = step.phases[2];
    ASSERT_EQ(backward.items, 3U);
    EXPECT_EQ(step.items[backward.firstItem].index, 2);
    EXPECT_EQ(step.items[backward.firstItem].end - step.items[backward.firstItem].begin, 250);
    ASSERT_EQ(step.parts.size(), 9U);
    EXPECT_EQ(step.parts[0].kind, StepPartKind::Recompute);
    EXPECT_EQ(step.parts[1].kind, StepPartKind::Mlp);
    EXPECT_EQ(step.parts[1].tiles, 5);
    EXPECT_EQ(step.parts[2].kind, StepPartKind::AttentionBackward);
    EXPECT_EQ(step.parts[2].begin, step.parts[1].end);
    EXPECT_EQ(step.parts[2].end - step.parts[2].begin, 100);
}

TEST(StepAnatomy, WithoutCheckpointsNothingIsRecomputed) {
    const StepAnatomy step = anatomyOf({.recompute = false});
    EXPECT_EQ(step.parts.size(), 6U);
    EXPECT_EQ(step.parts.front().kind, StepPartKind::Mlp);
    EXPECT_TRUE(step.copies.empty());
    EXPECT_EQ(step.pinned, 0U);
}

TEST(StepAnatomy, MicroBatchesRepeatTheirPhases) {
    const StepAnatomy step = anatomyOf({.passes = 3});
    EXPECT_EQ(step.passes, 3);
    EXPECT_EQ(step.phases.size(), 10U);
    EXPECT_EQ(step.phases[6].kind, TrainingPhase::Forward);
    EXPECT_EQ(step.phases[6].pass, 2);
    const std::vector<PhaseSum> sums = step.sums();
    ASSERT_EQ(sums.size(), 4U);
    EXPECT_EQ(sums[0].time, 3 * 300);
    EXPECT_EQ(sums[0].items, 3U);
}

TEST(StepAnatomy, WhatFollowsTheOptimizerIsOnceInAStep) {
    for (const char* name : {"merge", "quantize"}) {
        const StepAnatomy step = anatomyOf({.passes = 2, .last = name});
        EXPECT_EQ(phaseName(step.phases.back().kind), name);
        EXPECT_FALSE(isOfMicroBatch(step.phases.back().kind));
        EXPECT_EQ(step.phases.back().pass, 0);
        EXPECT_EQ(step.sums().back().kind, step.phases.back().kind);
        EXPECT_EQ(step.sums().back().time, 100);
    }
}

TEST(StepAnatomy, AnAdapterMovesThePeakOnlyByItsWeights) {
    EXPECT_EQ(anatomyOf({.adapter = true}).peak.maxTotal + 30 * kMiB, anatomyOf({}).peak.maxTotal);
}

TEST(StepAnatomy, OffloadedInputsAreCopiedOutAndBack) {
    const StepAnatomy step = anatomyOf({.offload = true});
    ASSERT_EQ(step.copies.size(), 6U);
    EXPECT_FALSE(step.copiesTimed);
    EXPECT_TRUE(step.copies.front().toHost);
    EXPECT_EQ(step.copies.front().layer, 0);
    EXPECT_FALSE(step.copies.back().toHost);
    EXPECT_EQ(step.copies.back().layer, 0);
    EXPECT_EQ(step.copies.back().bytes, 10 * kMiB);
}

TEST(StepAnatomy, CopiesOfTheDeviceSayHowLongOpsWaited) {
    testing::ScriptedRun run;
    run.time = 1000;
    TrainingStepScript{.layers = 2, .offload = true}.record(run);
    // The forward pass is 1000 to 1200, the loss ends at 1300, layer 1 goes back from 1300 to 1550.
    run.span("Copies", "device to host", 1050, 1080, 10 * kMiB);
    run.span("Copies", "device to host", 1150, 1190, 10 * kMiB);
    run.span("Copies", "host to device", 1300, 1340, 10 * kMiB);
    run.span("Copies", "host to device", 1500, 1570, 10 * kMiB);
    run.span("Copies", "device to host", 1700, 1701, 4); // the loss
    const auto timeline = run.timeline();
    const StepAnatomy step = stepAnatomy(*timeline, 1000, timeline->end());
    ASSERT_EQ(step.copies.size(), 4U);
    EXPECT_TRUE(step.copiesTimed);
    EXPECT_EQ(step.copies[0].layer, 0);
    EXPECT_EQ(step.copies[1].layer, 1);
    EXPECT_EQ(step.copies[2].layer, 1);
    EXPECT_EQ(step.copies[3].layer, 0);
    EXPECT_EQ(step.waited(), 20);
}

TEST(StepAnatomy, AStepWithoutLayersIsEmpty) {
    testing::ScriptedRun run;
    run.begin(base::ScopeKind::Step, "train", 1);
    run.time += 10;
    run.end();
    const auto timeline = run.timeline();
    EXPECT_TRUE(stepAnatomy(*timeline, 0, timeline->end()).empty());
    EXPECT_TRUE(stepAnatomy(*timeline, 5, 6).empty());
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/oom_report.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;
using testing::kGiB;
using testing::ScriptedRun;

std::shared_ptr<const RunTimeline> refusedRun() {
    ScriptedRun run;
    run.begin(base::ScopeKind::Phase, "load");
    run.allocate("model.embed_tokens.weight", MemoryCategory::Weights, 12 * kGiB);
    run.time = 100;
    run.end();
    for (int step = 2; step <= 3; ++step) {
        const std::uint64_t scale = step == 2 ? 1 : 2;
        run.begin(base::ScopeKind::Step, "train", step, step == 2 ? 65'536 : 98'304);
        run.begin(base::ScopeKind::Phase, "forward");
        const std::uint64_t inputs = run.allocate("layer_input", MemoryCategory::Activations, scale * 6 * kGiB);
        run.time += 100;
        run.end();
        run.begin(base::ScopeKind::Phase, "loss");
        run.begin(base::ScopeKind::Op, "LmHead");
        const std::uint64_t logits = run.allocate("logits", MemoryCategory::Logits, scale * 18 * kGiB);
        run.time += 100;
        if (step == 2) {
            const std::uint64_t gradient = run.allocate("grad_logits", MemoryCategory::Logits, 18 * kGiB);
            run.time += 10;
            run.free(gradient);
        } else {
            run.outOfMemory("grad_logits", MemoryCategory::Logits, 36 * kGiB, 80 * kGiB, 60 * kGiB, 20 * kGiB);
        }
        run.end();
        run.end();
        run.free(logits);
        run.free(inputs);
        run.end();
        run.time += 100;
    }
    return run.timeline();
}

std::size_t at(MemoryCategory category) {
    return static_cast<std::size_t>(category);
}

TEST(OomReport, SaysWhatHeldTheMemoryAndWhatChanged) {
    const auto timeline = refusedRun();
    const OomReport report = oomReport(*timeline, 0);
    EXPECT_EQ(report.event.reserved, 60 * kGiB);
    EXPECT_EQ(report.free, 20 * kGiB);
    EXPECT_EQ(report.missing, 16 * kGiB);
    EXPECT_EQ(report.unused, 0U);
    EXPECT_EQ(report.fragmentation, 0);
    EXPECT_EQ(report.held[at(MemoryCategory::Activations)], 12 * kGiB);
    ASSERT_NE(report.step, nullptr);
    EXPECT_EQ(report.step->index, 3);
    EXPECT_EQ(timeline->text(report.phase->name), "loss");
    EXPECT_EQ(timeline->text(report.op->name), "LmHead");
    ASSERT_NE(report.before, nullptr);
    EXPECT_EQ(report.before->index, 2);
    // Just before step 2 got its grad_logits.
    EXPECT_EQ(report.heldBefore[at(MemoryCategory::Logits)], 18 * kGiB);
    EXPECT_EQ(report.heldBefore[at(MemoryCategory::Activations)], 6 * kGiB);
    const MemoryGroup held = groupHeld(*timeline, 0, GroupBy::Op);
    EXPECT_EQ(held.bytes, 60 * kGiB);
    EXPECT_EQ(held.children[0].name, "LmHead");

    const std::vector<PhasePair> phases = phasePairs(*timeline, report, 60);
    ASSERT_EQ(phases.size(), 2U);
    EXPECT_EQ(timeline->text(phases[0].phase.name), "forward");
    EXPECT_EQ(phases[0].from, 0);
    EXPECT_EQ(phases[0].to, phases[1].from);
    EXPECT_EQ(phases[1].to, 1);
    EXPECT_EQ(phases[0].now.size(), phases[0].before.size());
    EXPECT_EQ(phases[0].now.back(), 24 * kGiB);
    EXPECT_EQ(phases[0].before.back(), 18 * kGiB);
    EXPECT_EQ(*std::ranges::max_element(phases[1].before), 54 * kGiB);
    EXPECT_EQ(phases[1].now.back(), 60 * kGiB);
}

TEST(OomReport, ComparesWithTheStepOfTheSameKind) {
    ScriptedRun run;
    for (const std::string_view kind : {"prefill", "decode", "prefill"}) {
        run.begin(base::ScopeKind::Step, kind, static_cast<int>(run.time / 100));
        const std::uint64_t id = run.allocate("hidden", MemoryCategory::Activations, kGiB);
        run.time += 50;
        if (run.time > 200) {
            run.outOfMemory("logits", MemoryCategory::Logits, 9 * kGiB, 8 * kGiB, 1 * kGiB, 7 * kGiB);
        }
        run.free(id);
        run.end();
        run.time += 50;
    }
    const auto timeline = run.timeline();
    const OomReport report = oomReport(*timeline, 0);
    ASSERT_NE(report.before, nullptr);
    EXPECT_EQ(report.before->index, 0);
}

TEST(OomReport, FragmentationAndRunsWithoutSteps) {
    ScriptedRun run;
    run.begin(base::ScopeKind::Phase, "load");
    run.allocate("w", MemoryCategory::Weights, 3 * kGiB);
    run.outOfMemory("", MemoryCategory::Workspace, 3 * kGiB, 8 * kGiB, 4 * kGiB, 1 * kGiB);
    const auto timeline = run.timeline();
    const OomReport report = oomReport(*timeline, 0);
    EXPECT_EQ(report.missing, 0U);
    EXPECT_EQ(report.unused, 1 * kGiB);
    EXPECT_DOUBLE_EQ(report.fragmentation, 0.8);
    EXPECT_EQ(report.step, nullptr);
    EXPECT_EQ(report.before, nullptr);
    EXPECT_TRUE(phasePairs(*timeline, report, 60).empty());
    EXPECT_THROW(oomReport(*timeline, 5), base::Internal);
}

/// A cache grows before the step that needs it begins.
TEST(OomReport, ComparesWhatComesBetweenStepsWithTheStepBefore) {
    ScriptedRun run;
    run.allocate("w", MemoryCategory::Weights, 4 * kGiB);
    run.begin(base::ScopeKind::Phase, "prefill");
    for (int step = 0; step < 3; ++step) {
        run.allocate("kv_cache.full", MemoryCategory::KvCache, kGiB);
        run.time += 10;
        run.counter("reserved_bytes", static_cast<double>((6 + static_cast<std::uint64_t>(step)) * kGiB));
        run.begin(base::ScopeKind::Step, "prefill", step, 4'096);
        const std::uint64_t id = run.allocate("hidden", MemoryCategory::Activations, kGiB);
        run.time += 100;
        run.free(id);
        run.end();
        run.time += 10;
    }
    run.outOfMemory("kv_cache.full", MemoryCategory::KvCache, 2 * kGiB, 9 * kGiB, 8 * kGiB, kGiB);
    const auto timeline = run.timeline();
    const OomReport report = oomReport(*timeline, 0);
    EXPECT_TRUE(report.betweenSteps());
    ASSERT_NE(report.before, nullptr);
    EXPECT_EQ(report.before->index, 2);
    EXPECT_EQ(report.tokensDone, 3 * 4'096);
    // Just before step 2 got its part of the cache.
    EXPECT_EQ(report.heldBefore[at(MemoryCategory::KvCache)], 2 * kGiB);
    EXPECT_EQ(report.reservedBefore, 7 * kGiB);
    const std::vector<PhasePair> steps = phasePairs(*timeline, report, 60);
    ASSERT_EQ(steps.size(), 1U);
    EXPECT_EQ(steps[0].phase.index, 2);
    EXPECT_EQ(*std::ranges::max_element(steps[0].now), 8 * kGiB);
    EXPECT_EQ(*std::ranges::max_element(steps[0].before), 7 * kGiB);
    EXPECT_EQ(steps[0].now.back(), 7 * kGiB);
}

TEST(OomReport, ComparesAPhaseWithoutStepsWithItsBeginning) {
    ScriptedRun run;
    run.allocate("context", MemoryCategory::Untracked, kGiB);
    run.time += 10;
    run.begin(base::ScopeKind::Phase, "load");
    run.time += 10;
    run.allocate("w", MemoryCategory::Weights, 3 * kGiB);
    run.time += 10;
    run.outOfMemory("w2", MemoryCategory::Weights, 3 * kGiB, 4 * kGiB, 4 * kGiB, 0);
    const auto timeline = run.timeline();
    const OomReport report = oomReport(*timeline, 0);
    EXPECT_FALSE(report.betweenSteps());
    EXPECT_EQ(report.beforeTime, report.phase->begin);
    EXPECT_EQ(report.heldBefore[at(MemoryCategory::Untracked)], kGiB);
    EXPECT_EQ(report.heldBefore[at(MemoryCategory::Weights)], 0U);
}

TEST(OomReport, WhatAnArenaReservedIsNoFragmentation) {
    ScriptedRun run;
    run.allocate("w", MemoryCategory::Weights, 3 * kGiB);
    run.record(base::OutOfMemoryEvent{0,
                                      3 * kGiB,
                                      8 * kGiB,
                                      6 * kGiB,
                                      2 * kGiB,
                                      {},
                                      run.intern("kv_cache.full"),
                                      MemoryCategory::KvCache,
                                      0,
                                      run.intern("arena of the prefill step"),
                                      3 * kGiB,
                                      3 * kGiB});
    const auto timeline = run.timeline();
    const OomReport report = oomReport(*timeline, 0);
    EXPECT_EQ(timeline->text(report.event.arena.value), "arena of the prefill step");
    EXPECT_EQ(report.event.arenaBytes, 3 * kGiB);
    EXPECT_EQ(report.idle, 3 * kGiB);
    EXPECT_EQ(report.unused, 0U);
    EXPECT_EQ(report.fragmentation, 0);
}

} // namespace
} // namespace vitrine::profiler

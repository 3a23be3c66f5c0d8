// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/core/tracer.h"

#include <gtest/gtest.h>
#include <set>

#include "base/error.h"
#include "base/launch_scope.h"
#include "tests/kernels/core/recording_sink.h"

namespace vitrine::kernels {
namespace {

using base::MemoryCategory;
using base::ScopeKind;

struct TracerFixture : testing::Test {
    RecordingSink sink;
    ManualClock clock;
    RunTrace run{sink};

    /// One step: a layer scope with an op, a piece that is freed inside and, if asked, one that stays.
    std::uint64_t step(Tracer& tracer, int index, std::uint64_t bytes, bool keep = false) {
        std::uint64_t kept = 0;
        tracer.beginStep("decode", index, 1);
        {
            const TraceScope layer(tracer, ScopeKind::Layer, "layer", 0);
            const TraceScope op(tracer, ScopeKind::Op, "RmsNorm");
            clock.time += 10;
            const std::uint64_t id = allocate(tracer, 4096, bytes, MemoryCategory::Activations);
            if (keep) {
                kept = allocate(tracer, 8192, 64, MemoryCategory::KvCache);
            }
            clock.time += 30;
            tracer.freed(id);
        }
        clock.time += 60;
        tracer.endStep();
        return kept;
    }

    static std::uint64_t allocate(Tracer& tracer, std::uint64_t address, std::uint64_t bytes, MemoryCategory category) {
        return tracer.allocated(address, bytes, base::MemorySpace::Device, category, "x", DType::U8,
                                Shape{static_cast<std::int64_t>(bytes)});
    }
};

TEST_F(TracerFixture, SaysWhereTheRunIsAlsoWhenItRecordsNothing) {
    for (const ProfileLevel level : {ProfileLevel::Off, ProfileLevel::Light, ProfileLevel::Full}) {
        Tracer tracer(run, clock, level);
        EXPECT_EQ(tracer.place().text(), "");
        const TraceScope phase(tracer, ScopeKind::Phase, "train");
        TracePlace inside;
        {
            const TraceScope layer(tracer, ScopeKind::Layer, std::string("backward layer"), 11);
            const TraceScope op(tracer, ScopeKind::Op, "Matmul");
            inside = tracer.place();
        }
        EXPECT_EQ(inside.text(), "backward layer 11") << "the name belongs to the tracer";
        EXPECT_EQ(tracer.place().text(), "train");
    }
}

TEST_F(TracerFixture, RanksOfARunShareIdsAndSayWhoTheyAre) {
    Tracer first(run, clock, ProfileLevel::Light, 0), second(run, clock, ProfileLevel::Light, 1);
    for (int index = 0; index < 2; ++index) {
        step(first, index, 100, true);
        step(second, index, 200, true);
    }
    second.counter("reserved_bytes", 1);
    second.record(base::KvPageEvent{});
    std::set<std::uint64_t> ids;
    std::size_t taken = 0;
    for (const base::AllocationEvent& event : sink.all<base::AllocationEvent>()) {
        ids.insert(event.id);
        ++taken;
    }
    for (const base::ScopeBeginEvent& event : sink.all<base::ScopeBeginEvent>()) {
        ids.insert(event.id.value);
        ++taken;
    }
    EXPECT_EQ(ids.size(), taken);
    const auto templates = sink.all<base::StepTemplateEvent>();
    ASSERT_EQ(templates.size(), 2U);
    EXPECT_NE(templates[0].step->id, templates[1].step->id);
    const auto replays = sink.all<base::StepReplayedEvent>();
    ASSERT_EQ(replays.size(), 2U);
    EXPECT_EQ(replays[0].device, 0);
    EXPECT_EQ(replays[1].device, 1);
    EXPECT_EQ(replays[1].stepTemplate, templates[1].step->id);
    EXPECT_GE(replays[1].firstId, replays[0].firstId + templates[0].step->idCount);
    EXPECT_EQ(sink.all<base::CounterEvent>().back().device, 1);
    EXPECT_EQ(sink.all<base::KvPageEvent>().back().device, 1);
    EXPECT_EQ(sink.all<base::AllocationEvent>().back().device, 1);
    EXPECT_EQ(sink.all<base::FreeEvent>().back().device, 1);
    EXPECT_EQ(sink.all<base::ScopeEndEvent>().back().device, 1);
}

TEST_F(TracerFixture, KnowsWhereSomethingFailed) {
    Tracer tracer(run, clock, ProfileLevel::Off);
    EXPECT_EQ(tracer.failedAt(), "");
    const auto fail = [&](bool inOp) {
        tracer.beginStep("decode", 12, 1);
        try {
            const TraceScope layer(tracer, ScopeKind::Layer, "layer", 3);
            if (inOp) {
                tracer.beginScope(ScopeKind::Op, "AllReduce");
                tracer.noteFailure();
                tracer.endScope({});
            }
            throw base::Internal("planted");
        } catch (const base::Internal&) {
            tracer.endStep();
        }
    };
    fail(true);
    EXPECT_EQ(tracer.failedAt(), "decode step 12, layer 3, AllReduce");
    fail(false);
    EXPECT_EQ(tracer.failedAt(), "decode step 12, layer 3");
    const TraceScope phase(tracer, ScopeKind::Phase, "load");
    EXPECT_EQ(tracer.failedAt(), "");
}

TEST_F(TracerFixture, OffRecordsNothing) {
    Tracer tracer(run, clock, ProfileLevel::Off);
    step(tracer, 0, 100);
    tracer.counter("c", 1);
    EXPECT_TRUE(sink.events.empty());
}

TEST_F(TracerFixture, AStepThatDoesNotRepeatIsReportedByItsPeak) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    clock.time = 100;
    tracer.beginStep("mixed", 7, 30, false);
    const std::uint64_t first = allocate(tracer, 4096, 100, MemoryCategory::Activations);
    const std::uint64_t second = allocate(tracer, 8192, 50, MemoryCategory::Workspace);
    tracer.freed(first);
    const std::uint64_t third = allocate(tracer, 4096, 60, MemoryCategory::Logits);
    const std::uint64_t kept = allocate(tracer, 1 << 20, 64, MemoryCategory::KvCache);
    tracer.freed(second);
    tracer.freed(third);
    clock.time = 180;
    tracer.endStep();
    EXPECT_TRUE(sink.all<base::StepTemplateEvent>().empty());
    EXPECT_FALSE(tracer.lastTemplate());
    const auto births = sink.all<base::AllocationEvent>();
    ASSERT_EQ(births.size(), 3U) << "two categories at the peak, and what outlives the step";
    EXPECT_EQ(births[0].category, MemoryCategory::Activations);
    EXPECT_EQ(births[0].bytes, 100U);
    EXPECT_EQ(births[1].category, MemoryCategory::Workspace);
    EXPECT_EQ(births[1].bytes, 50U);
    EXPECT_EQ(births[2].id, kept);
    const auto deaths = sink.all<base::FreeEvent>();
    ASSERT_EQ(deaths.size(), 2U);
    EXPECT_EQ(deaths[0].id, births[0].id);
    EXPECT_EQ(deaths[1].time, 180);
    const auto scopes = sink.all<base::ScopeBeginEvent>();
    ASSERT_EQ(scopes.size(), 1U);
    EXPECT_EQ(scopes[0].index, 7);
    EXPECT_EQ(births[0].scope, scopes[0].id);
    EXPECT_EQ(births[2].scope, scopes[0].id);
    ASSERT_EQ(sink.all<base::ScopeEndEvent>().size(), 1U);
    step(tracer, 0, 100);
    step(tracer, 1, 100);
    EXPECT_EQ(sink.all<base::StepReplayedEvent>().size(), 1U);
}

TEST_F(TracerFixture, LightFoldsRepeatedSteps) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    for (int i = 0; i < 4; ++i) {
        step(tracer, i, 100);
    }
    ASSERT_EQ(sink.all<base::StepTemplateEvent>().size(), 1U);
    EXPECT_EQ(sink.all<base::AllocationEvent>().size(), 1U);
    const auto replays = sink.all<base::StepReplayedEvent>();
    ASSERT_EQ(replays.size(), 3U);
    EXPECT_EQ(replays[0].begin, 100);
    EXPECT_EQ(replays[0].end, 200);
    EXPECT_EQ(replays[2].index, 3);
    const auto& step = *sink.all<base::StepTemplateEvent>()[0].step;
    EXPECT_EQ(step.duration, 100);
    EXPECT_EQ(step.idCount, 4U); // step, layer, op, piece
    EXPECT_GE(replays[1].firstId, replays[0].firstId + step.idCount);
}

TEST_F(TracerFixture, AnotherSizeMakesAnotherTemplate) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    step(tracer, 0, 100);
    step(tracer, 1, 200);
    step(tracer, 2, 100);
    EXPECT_EQ(sink.all<base::StepTemplateEvent>().size(), 2U);
    EXPECT_EQ(sink.all<base::StepReplayedEvent>().size(), 1U);
}

TEST_F(TracerFixture, WhatOutlivesAStepIsWrittenAsItIs) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    step(tracer, 0, 100);
    const std::uint64_t kept = step(tracer, 1, 100, true);
    const auto allocations = sink.all<base::AllocationEvent>();
    ASSERT_EQ(allocations.size(), 2U);
    EXPECT_EQ(allocations[1].id, kept);
    const auto replays = sink.all<base::StepReplayedEvent>();
    ASSERT_EQ(replays.size(), 1U);
    EXPECT_EQ(allocations[1].scope.value, replays[0].firstId + 2); // the op, after the step and the layer
    tracer.freed(kept);
    EXPECT_EQ(sink.all<base::FreeEvent>().back().id, kept);
}

TEST_F(TracerFixture, SpansOfAReplayedStepLieInItsScopes) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    for (int i = 0; i < 2; ++i) {
        tracer.beginStep("decode", i, 1);
        {
            const TraceScope layer(tracer, ScopeKind::Layer, "layer", 0);
            clock.time += 10 + i;
            tracer.span("Copy", "ids", clock.time - 5, clock.time, 64);
        }
        tracer.endStep();
    }
    const auto spans = sink.all<base::SpanEvent>();
    const auto replays = sink.all<base::StepReplayedEvent>();
    ASSERT_EQ(spans.size(), 2U);
    ASSERT_EQ(replays.size(), 1U);
    EXPECT_EQ(spans[0].scope, sink.all<base::ScopeBeginEvent>()[1].id);
    EXPECT_EQ(spans[1].scope.value, replays[0].firstId + 1); // the layer, after the step
    EXPECT_EQ(spans[1].end, 21);
    tracer.span("Copy", "outside", 0, 1, 1);
    EXPECT_EQ(sink.all<base::SpanEvent>().back().scope, base::ScopeId{});
}

TEST_F(TracerFixture, FullWritesEverything) {
    Tracer tracer(run, clock, ProfileLevel::Full);
    step(tracer, 0, 100);
    step(tracer, 1, 100);
    EXPECT_TRUE(sink.all<base::StepReplayedEvent>().empty());
    EXPECT_EQ(sink.all<base::AllocationEvent>().size(), 2U);
    EXPECT_EQ(sink.all<base::ScopeBeginEvent>().size(), 6U);
    EXPECT_EQ(sink.all<base::ScopeEndEvent>().size(), 6U);
}

TEST_F(TracerFixture, ALongStepIsWrittenWhileItRuns) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    tracer.beginStep("prefill", 0, 9);
    allocate(tracer, 1, 1, MemoryCategory::Activations);
    EXPECT_TRUE(sink.events.empty());
    clock.time += 1'000'000'000;
    allocate(tracer, 2, 1, MemoryCategory::Activations);
    EXPECT_EQ(sink.all<base::AllocationEvent>().size(), 2U);
    tracer.endStep();
}

TEST_F(TracerFixture, OutOfMemoryFlushesTheStep) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    tracer.beginStep("decode", 0, 1);
    allocate(tracer, 1, 1, MemoryCategory::Activations);
    tracer.outOfMemory(base::OutOfMemoryEvent{}, "logits", {});
    ASSERT_EQ(sink.all<base::AllocationEvent>().size(), 1U);
    ASSERT_EQ(sink.all<base::OutOfMemoryEvent>().size(), 1U);
    EXPECT_EQ(sink.texts[sink.all<base::OutOfMemoryEvent>()[0].name.value], "logits");
}

TEST_F(TracerFixture, StepsDoNotNest) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    tracer.beginStep("decode", 0, 1);
    EXPECT_THROW(tracer.beginStep("decode", 1, 1), base::Internal);
}

/// Remembers what is said at the borders of steps.
struct BorderSink final : base::TraceSink {
    base::StringId intern(std::string_view) override { return {1}; }
    void record(const base::TraceEvent& event) override {
        if (const auto* replay = std::get_if<base::StepReplayedEvent>(&event)) {
            replays.push_back(*replay);
        }
    }
    void stepBegins(std::string_view name, base::ScopeId step) override { begun.emplace_back(name, step.value); }
    void stepEnded(base::ScopeId step, std::span<const base::StepScope> scopes) override {
        ended.push_back(step.value);
        reported.assign(scopes.begin(), scopes.end());
    }
    void replayBegins(std::string_view name, base::ScopeId step) override { launched.emplace_back(name, step.value); }
    std::vector<std::pair<std::string, std::uint64_t>> begun, launched;
    std::vector<std::uint64_t> ended;
    std::vector<base::StepScope> reported;
    std::vector<base::StepReplayedEvent> replays;
};

TEST_F(TracerFixture, BordersOfStepsAreReportedAtOnceWithTheIdsOfTheTrace) {
    BorderSink borders;
    RunTrace trace(borders);
    Tracer tracer(trace, clock, ProfileLevel::Light);
    step(tracer, 0, 100);
    ASSERT_EQ(borders.begun.size(), 1U);
    EXPECT_EQ(borders.begun[0].first, "decode");
    EXPECT_EQ(borders.ended, std::vector<std::uint64_t>{borders.begun[0].second});
    ASSERT_EQ(borders.reported.size(), 3U) << "step, layer and op";
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(borders.reported[i].relative, i);
        EXPECT_EQ(borders.reported[i].recorded, borders.reported[i].ran) << "the first step is written as it ran";
    }
    ASSERT_EQ(tracer.lastTemplate(), 0U);
    step(tracer, 1, 100, true);
    ASSERT_EQ(borders.replays.size(), 1U);
    ASSERT_EQ(borders.reported.size(), 3U);
    for (const base::StepScope& scope : borders.reported) {
        EXPECT_EQ(scope.recorded.value, borders.replays[0].firstId + scope.relative);
        EXPECT_NE(scope.recorded, scope.ran);
    }
}

TEST_F(TracerFixture, ReplaysTakeTheirIdsWhenTheyAreLaunchedAndAreWrittenWhenTheyEnd) {
    BorderSink borders;
    RunTrace trace(borders);
    Tracer tracer(trace, clock, ProfileLevel::Light);
    step(tracer, 0, 100);
    const std::optional<std::uint32_t> known = tracer.lastTemplate();
    clock.time = 1000;
    const StepReplay first = tracer.beginReplay(known, 7);
    {
        const ReplayScope scope(tracer, first);
        EXPECT_EQ(base::launchScope(), first.scope);
    }
    EXPECT_EQ(base::launchScope().value, 0U);
    clock.time = 1100;
    const StepReplay second = tracer.beginReplay(known, 8); // while the first is under way
    EXPECT_GE(second.scope.value, first.scope.value + 3);
    EXPECT_EQ(borders.launched, (std::vector<std::pair<std::string, std::uint64_t>>{{"decode", first.scope.value},
                                                                                    {"decode", second.scope.value}}));
    EXPECT_TRUE(borders.replays.empty());
    clock.time = 1500;
    tracer.endReplay(first);
    clock.time = 1900;
    tracer.endReplay(second);
    ASSERT_EQ(borders.replays.size(), 2U);
    EXPECT_EQ(borders.replays[0].firstId, first.scope.value);
    EXPECT_EQ(borders.replays[0].begin, 1000);
    EXPECT_EQ(borders.replays[0].end, 1500);
    EXPECT_EQ(borders.replays[0].index, 7);
    EXPECT_EQ(borders.replays[1].firstId, second.scope.value);
    EXPECT_EQ(borders.replays[1].begin, 1500) << "the device does one after the other";
    EXPECT_EQ(borders.replays[1].end, 1900);
    EXPECT_GE(allocate(tracer, 1, 1, MemoryCategory::Other), second.scope.value + 3);
    EXPECT_FALSE(tracer.canReplay(99));
    EXPECT_FALSE(tracer.canReplay(std::nullopt));
    EXPECT_THROW(tracer.beginReplay(99, 0), base::Internal);
}

TEST_F(TracerFixture, ReplaysAreNotReportedWhenOff) {
    BorderSink borders;
    RunTrace trace(borders);
    Tracer tracer(trace, clock, ProfileLevel::Off);
    EXPECT_TRUE(tracer.canReplay(std::nullopt));
    const StepReplay replay = tracer.beginReplay(std::nullopt, 3);
    {
        const ReplayScope scope(tracer, replay);
    }
    tracer.endReplay(replay);
    EXPECT_TRUE(borders.launched.empty());
    EXPECT_TRUE(borders.replays.empty());
}

TEST_F(TracerFixture, ARestartForgetsNamesAndTemplatesButNoIds) {
    Tracer tracer(run, clock, ProfileLevel::Light);
    step(tracer, 0, 100);
    const std::optional<std::uint32_t> before = tracer.lastTemplate();
    const std::uint64_t id = allocate(tracer, 1, 1, MemoryCategory::Other);
    BorderSink other;
    run.restart(other);
    tracer.restart(ProfileLevel::Full);
    EXPECT_EQ(tracer.level(), ProfileLevel::Full);
    EXPECT_FALSE(tracer.canReplay(before));
    tracer.restart(ProfileLevel::Light);
    step(tracer, 0, 100);
    ASSERT_TRUE(tracer.lastTemplate());
    EXPECT_NE(tracer.lastTemplate(), before);
    EXPECT_TRUE(tracer.canReplay(tracer.lastTemplate()));
    EXPECT_FALSE(tracer.canReplay(before));
    EXPECT_GT(other.begun.back().second, id);
    const TraceScope open(tracer, ScopeKind::Phase, "decode");
    EXPECT_THROW(tracer.restart(ProfileLevel::Off), base::Internal);
}

TEST_F(TracerFixture, FullFoldsStepsWhereTheyAreGraphs) {
    Tracer plain(run, clock, ProfileLevel::Full);
    EXPECT_FALSE(plain.foldsSteps());
    Tracer tracer(run, clock, ProfileLevel::Full, 0, true);
    EXPECT_TRUE(tracer.foldsSteps());
    step(tracer, 0, 100);
    step(tracer, 1, 100);
    EXPECT_EQ(sink.all<base::StepReplayedEvent>().size(), 1U);
    // Ops outside of steps are recorded all the same.
    const std::size_t before = sink.all<base::ScopeBeginEvent>().size();
    {
        const TraceScope op(tracer, ScopeKind::Op, "Fill");
    }
    EXPECT_EQ(sink.all<base::ScopeBeginEvent>().size(), before + 1);
}

TEST_F(TracerFixture, TheLaunchScopeFollowsTheInnermostScope) {
    for (const ProfileLevel level : {ProfileLevel::Light, ProfileLevel::Full}) {
        Tracer tracer(run, clock, level);
        const TraceScope layer(tracer, ScopeKind::Layer, "layer", 0);
        const base::ScopeId outer = base::launchScope();
        EXPECT_EQ(outer, tracer.currentScope());
        EXPECT_NE(outer.value, 0U);
        {
            // Below full an op outside of steps has no scope of its own: it launches for the layer.
            const TraceScope op(tracer, ScopeKind::Op, "RmsNorm");
            EXPECT_EQ(base::launchScope() == outer, level == ProfileLevel::Light);
        }
        EXPECT_EQ(base::launchScope(), outer);
    }
    EXPECT_EQ(base::launchScope().value, 0U);
}

} // namespace
} // namespace vitrine::kernels

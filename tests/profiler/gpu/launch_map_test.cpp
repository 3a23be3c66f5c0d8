// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/launch_map.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

using base::ScopeId;
using base::StepScope;

std::uint64_t known(const LaunchMap& map, std::uint32_t correlation, std::uint64_t node = 0) {
    const std::optional<ScopeId> scope = map.scopeOf(correlation, node);
    return scope ? scope->value : 999'999;
}

TEST(LaunchMap, LaunchesOutsideOfStepsAreKnownAtOnce) {
    LaunchMap map;
    EXPECT_EQ(known(map, 7), 0U) << "nobody launched that";
    map.launched(7, ScopeId{3});
    EXPECT_EQ(known(map, 7), 3U);
    map.launched(7 + (1U << 19), ScopeId{4});
    EXPECT_EQ(known(map, 7), 0U) << "its place was taken by a later one";
    map.beginRun();
    EXPECT_EQ(known(map, 7 + (1U << 19)), 0U);
}

TEST(LaunchMap, AnAnswerWaitsForTheStepsEndAndGivesItsIdInTheTrace) {
    LaunchMap map;
    map.launched(1, ScopeId{2});
    map.stepBegins(ScopeId{10});
    map.launched(2, ScopeId{10});
    map.launched(3, ScopeId{12});
    EXPECT_FALSE(map.scopeOf(2, 0));
    EXPECT_FALSE(map.scopeOf(3, 0));
    EXPECT_EQ(known(map, 1), 2U);
    const std::vector<StepScope> recorded{{{10}, {50}, 0}, {{11}, {51}, 1}, {{12}, {53}, 3}};
    map.stepEnded(ScopeId{10}, recorded);
    EXPECT_EQ(known(map, 2), 50U);
    EXPECT_EQ(known(map, 3), 53U);
    // The next step ran with ids after it and is reported as it ran.
    map.stepBegins(ScopeId{60});
    map.launched(4, ScopeId{61});
    map.stepEnded(ScopeId{60}, {});
    EXPECT_EQ(known(map, 4), 61U);
    EXPECT_EQ(known(map, 2), 50U);
}

TEST(LaunchMap, NodesOfAGraphBelongToTheScopesThatTheyWereCapturedIn) {
    LaunchMap map;
    map.stepBegins(ScopeId{100});
    map.nodeCreated(1001, ScopeId{103});
    map.nodeCreated(1002, ScopeId{105});
    map.nodeCloned(1001, 2001);
    map.nodeCloned(1002, 2002);
    map.nodeCloned(777, 2003); // of a graph that nobody saw
    map.launched(5, ScopeId{100});
    const std::vector<StepScope> recorded{{{100}, {200}, 0}, {{103}, {202}, 2}, {{105}, {204}, 4}};
    map.stepEnded(ScopeId{100}, recorded);
    // The capturing step launched it itself.
    EXPECT_EQ(known(map, 5, 2001), 202U);
    EXPECT_EQ(known(map, 5, 2002), 204U);
    EXPECT_EQ(known(map, 5, 2003), 200U) << "an unknown node belongs to the step";
    // A replay takes ids of its own.
    map.stepBegins(ScopeId{300});
    map.launched(6, ScopeId{300});
    EXPECT_FALSE(map.scopeOf(6, 2001));
    map.stepEnded(ScopeId{300}, {});
    EXPECT_EQ(known(map, 6, 2001), 302U);
    EXPECT_EQ(known(map, 6, 2002), 304U);
    EXPECT_EQ(known(map, 6), 300U);
    // Its last records come after the graph is gone; and the graph outlives a run.
    map.nodeDestroyed(2001);
    EXPECT_EQ(known(map, 6, 2001), 302U);
    map.beginRun();
    map.launched(9, ScopeId{20});
    EXPECT_EQ(known(map, 9, 2002), 24U);
}

TEST(LaunchMap, ATemplatesFirstStepKeepsItsIdsAndStillTeachesItsNodes) {
    LaunchMap map;
    map.stepBegins(ScopeId{10});
    map.nodeCreated(1, ScopeId{14});
    map.launched(1, ScopeId{14});
    const std::vector<StepScope> recorded{{{10}, {10}, 0}, {{14}, {14}, 3}};
    map.stepEnded(ScopeId{10}, recorded);
    EXPECT_EQ(known(map, 1), 14U);
    map.launched(2, ScopeId{40});
    EXPECT_EQ(known(map, 2, 1), 43U);
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/phase_map.h"

#include <gtest/gtest.h>

#include "tests/profiler/analysis/training_step_script.h"

namespace vitrine::profiler {
namespace {

using testing::TrainingStepScript;

StepAnatomy anatomyOf(const TrainingStepScript& script) {
    const auto timeline = script.timeline();
    return stepAnatomy(*timeline, 1000, timeline->end());
}

void expectMonotone(const PhaseMap& map, base::TimeNs end) {
    for (base::TimeNs at = 1; at <= end; ++at) {
        ASSERT_GE(map.timeInB(at), map.timeInB(at - 1)) << at;
        ASSERT_GE(map.timeInA(at), map.timeInA(at - 1)) << at;
    }
}

TEST(PhaseMap, EqualStepsLieOverThemselves) {
    const StepAnatomy step = anatomyOf({.chunks = 4});
    const PhaseMap map(step, step);
    for (const base::TimeNs at : {0, 70, 333, 600, 1100}) {
        EXPECT_EQ(map.timeInB(at), at);
        EXPECT_EQ(map.timeInA(at), at);
    }
}

TEST(PhaseMap, LayersLieOverLayersAndRunEvenlyInside) {
    const StepAnatomy a = anatomyOf({}), b = anatomyOf({.unit = 200});
    const PhaseMap map(a, b);
    EXPECT_EQ(map.timeInB(100), 200);
    EXPECT_EQ(map.timeInB(150), 300);
    EXPECT_EQ(map.timeInA(500), 250);
    EXPECT_EQ(map.timeInB(a.length()), b.length());
    expectMonotone(map, a.length());
}

TEST(PhaseMap, ALayerWithoutRecomputeLiesOverOneWithIt) {
    const StepAnatomy a = anatomyOf({}), b = anatomyOf({.recompute = false});
    const PhaseMap map(a, b);
    // The last layer goes back from 400 to 650 in A and from 400 to 600 in B.
    EXPECT_EQ(map.timeInB(650), 600);
    EXPECT_EQ(map.timeInB(525), 500);
    expectMonotone(map, a.length());
}

TEST(PhaseMap, BStandsStillInAPhaseThatItDoesNotHave) {
    const StepAnatomy a = anatomyOf({}), b = anatomyOf({.optimizer = false});
    const PhaseMap map(a, b);
    EXPECT_EQ(map.timeInB(a.length() - 30), b.length());
    EXPECT_EQ(map.timeInB(a.length()), b.length());
    expectMonotone(map, a.length());
    const PhaseMap back(b, a);
    EXPECT_EQ(back.timeInB(b.length()), b.length());
    expectMonotone(back, a.length());
}

TEST(PhaseMap, MoreMicroBatchesOfAWaitAtTheEndOfTheLastOneOfB) {
    const StepAnatomy a = anatomyOf({.passes = 3}), b = anatomyOf({});
    const PhaseMap map(a, b);
    const base::TimeNs pass = a.phases[3].begin - a.begin;
    EXPECT_EQ(map.timeInB(pass - 1), map.timeInB(pass) - 1);
    EXPECT_EQ(map.timeInB(2 * pass), map.timeInB(pass));
    EXPECT_EQ(map.timeInB(a.length()), b.length());
    expectMonotone(map, a.length());
}

TEST(PhaseMap, WithoutLayersEveryTimeIsItself) {
    EXPECT_EQ(PhaseMap().timeInB(77), 77);
    EXPECT_EQ(PhaseMap::identity(100).timeInA(42), 42);
}

} // namespace
} // namespace vitrine::profiler

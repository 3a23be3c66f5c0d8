// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/speculation_counts.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

TEST(SpeculationCounts, TheUsualTimeIsThatOfMostOfTheLastSteps) {
    UsualTime time;
    EXPECT_FALSE(time.seconds());
    time.add(30); // waited for a kernel
    time.add(2);  // captured a graph
    time.add(0.5);
    EXPECT_EQ(time.seconds(), 0.5) << "few steps";
    for (int i = 0; i < 10; ++i) {
        time.add(0.5);
    }
    EXPECT_EQ(time.seconds(), 0.5);
    for (int i = 0; i < 200; ++i) {
        time.add(0.25);
    }
    EXPECT_EQ(time.seconds(), 0.25);
}

TEST(SpeculationCounts, TheGainIsThatOverPlainSteps) {
    SpeculationCounts counts;
    EXPECT_EQ(counts.tokensPerStep(), 1);
    EXPECT_FALSE(counts.gain());
    counts.rows = 10; // of one request
    counts.drafted = 20;
    counts.accepted = 10;
    counts.plainSteps = 6;
    counts.checkSteps = 4;
    counts.checkTime.add(0.5);
    EXPECT_FALSE(counts.gain()) << "no plain step to compare with";
    counts.plainTime.add(0.25);
    counts.plainSteps = 2;
    EXPECT_FALSE(counts.gain()) << "both plain steps may be slow ones";
    counts.plainSteps = 6;
    EXPECT_EQ(counts.acceptanceRate(), 0.5);
    EXPECT_EQ(counts.tokensPerStep(), 2);
    EXPECT_EQ(counts.savedSteps(), 10);
    EXPECT_DOUBLE_EQ(*counts.gain(), 20 * 0.25 / (6 * 0.25 + 4 * 0.5));
    counts.draftSeconds = 1.5;
    EXPECT_DOUBLE_EQ(*counts.gain(), 1);
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/stop_text.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

TEST(StopText, WithoutStopsEverythingPasses) {
    StopText stop({});
    EXPECT_EQ(stop.push("abc"), "abc");
    EXPECT_EQ(stop.finish(), "");
}

TEST(StopText, FindsAStopAcrossPieces) {
    StopText stop({"END"});
    EXPECT_EQ(stop.push("one E"), "one ");
    EXPECT_EQ(stop.push("N"), "");
    EXPECT_EQ(stop.push("D two"), "");
    EXPECT_TRUE(stop.hit());
    EXPECT_EQ(stop.push("three"), "");
    EXPECT_EQ(stop.finish(), "");
}

TEST(StopText, GivesBackWhatOnlyLookedLikeAStop) {
    StopText stop({"aab"});
    EXPECT_EQ(stop.push("xaa"), "x");
    EXPECT_EQ(stop.push("a"), "a");
    EXPECT_EQ(stop.push("c"), "aac");
    EXPECT_FALSE(stop.hit());
    EXPECT_EQ(stop.push("a"), "");
    EXPECT_EQ(stop.finish(), "a");
}

TEST(StopText, TheEarliestStopCounts) {
    StopText stop({"yz", "xy"});
    EXPECT_EQ(stop.push("wxyz"), "w");
    EXPECT_TRUE(stop.hit());
}

} // namespace
} // namespace vitrine::engine

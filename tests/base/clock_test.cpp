// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/clock.h"

#include <gtest/gtest.h>

namespace vitrine::base {
namespace {

TEST(Clock, NeverGoesBack) {
    TimeNs before = monotonicNs();
    for (int i = 0; i < 1000; ++i) {
        const TimeNs now = monotonicNs();
        ASSERT_GE(now, before);
        before = now;
    }
}

TEST(Clock, StartsAtZero) {
    const TimeNs before = monotonicNs();
    const MonotonicClock clock;
    const TimeNs now = clock.now();
    EXPECT_GE(now, 0);
    EXPECT_LE(now, monotonicNs() - before);
    EXPECT_EQ(clock.timeBase(), TimeBase::Monotonic);
}

TEST(Clock, WallClockIsInThisCentury) {
    constexpr std::int64_t kMsOf2024 = 1704067200000;
    EXPECT_GT(wallClockMs(), kMsOf2024);
}

} // namespace
} // namespace vitrine::base

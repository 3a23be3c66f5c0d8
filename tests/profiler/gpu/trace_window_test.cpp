// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/trace_window.h"

#include <gtest/gtest.h>
#include <map>
#include <vector>

namespace vitrine::profiler {
namespace {

TEST(TraceWindow, LightSeesTheKernelsOfAFewSteps) {
    TraceWindow window(false, 20, 200);
    EXPECT_EQ(window.atStart(), TraceDetail::Graphs);
    std::vector<int> traced;
    for (int i = 1; i <= 100; ++i) {
        if (window.next("prefill") == TraceDetail::Everything) {
            traced.push_back(i);
        }
    }
    EXPECT_EQ(traced, (std::vector{1, 2, 4, 8, 16, 32, 64}));
    EXPECT_EQ(window.next("decode"), TraceDetail::Graphs); // captures the graph
    EXPECT_EQ(window.next("decode"), TraceDetail::Everything);
    std::map<TraceDetail, int> seen;
    for (int i = 2; i < 10'000; ++i) {
        ++seen[window.next("decode")];
    }
    EXPECT_EQ(seen[TraceDetail::Everything], 2 * 10 - 1);
    EXPECT_EQ(seen[TraceDetail::Graphs], 10'000 / 10 - 2 * 10 - 1);
}

TEST(TraceWindow, FullSeesEveryKernelInItsWindows) {
    TraceWindow window(true, 5, 50);
    EXPECT_EQ(window.atStart(), TraceDetail::Everything);
    std::map<TraceDetail, int> seen;
    for (int i = 0; i < 500; ++i) {
        ++seen[window.next("decode")];
    }
    EXPECT_EQ(seen[TraceDetail::Everything], 50);
    EXPECT_EQ(seen[TraceDetail::Graphs], 0);
    EXPECT_EQ(window.next("prefill"), TraceDetail::Everything);
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/trace_window.h"

#include <gtest/gtest.h>
#include <map>

namespace vitrine::profiler {
namespace {

TEST(TraceWindow, LightSeesTheKernelsOfAFewSteps) {
    TraceWindow window(false, 20, 200);
    EXPECT_EQ(window.atStart(), TraceDetail::Graphs);
    EXPECT_EQ(window.next("prefill"), TraceDetail::Everything);
    EXPECT_EQ(window.next("prefill"), TraceDetail::Graphs);
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

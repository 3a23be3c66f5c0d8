// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/kv_curve.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

TEST(KvCurve, JoinsBytesAndTokensByTime) {
    testing::ScriptedRun run;
    for (int token = 1; token <= 20; ++token) {
        run.time = token * 10;
        run.counter("kv_bytes.full", token * 100.0);
        run.counter("kv_tokens", token - 0.5); // replaced at the same instant
        run.counter("kv_bytes.sliding", std::min(token, 8) * 50.0);
        run.counter("kv_tokens", token);
    }
    run.time = 300;
    run.counter("kv_tokens", 0); // the request is over
    const KvCurve curve = kvCurve(*run.timeline());
    EXPECT_EQ(curve.groups, (std::vector<std::string>{"full", "sliding"}));
    ASSERT_EQ(curve.points.size(), 20U);
    for (int token = 1; token <= 20; ++token) {
        const KvPoint& point = curve.points[static_cast<std::size_t>(token - 1)];
        EXPECT_EQ(point.tokens, token);
        EXPECT_EQ(point.time, token * 10);
        EXPECT_EQ(point.bytes, (std::vector<double>{token * 100.0, std::min(token, 8) * 50.0}));
    }
}

TEST(KvCurve, KeepsTheKneeWhenThinnedOut) {
    testing::ScriptedRun run;
    for (int token = 1; token <= 5000; ++token) {
        run.time = token;
        run.counter("kv_bytes.sliding", std::min(token, 1237) * 50.0);
        run.counter("kv_tokens", token);
    }
    const KvCurve curve = kvCurve(*run.timeline(), 100);
    EXPECT_LE(curve.points.size(), 110U);
    EXPECT_EQ(curve.points.front().tokens, 1);
    EXPECT_EQ(curve.points.back().tokens, 5000);
    EXPECT_TRUE(std::ranges::any_of(curve.points, [](const KvPoint& point) { return point.tokens == 1237; }));
    RunTimelineBuilder builder;
    EXPECT_TRUE(kvCurve(*builder.snapshot()).points.empty());
}

} // namespace
} // namespace vitrine::profiler

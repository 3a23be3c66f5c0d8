// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/readiness.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

TEST(Readiness, CountersNeedAnAdministratorOrTheModulesOption) {
    const std::string closed = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n";
    EXPECT_EQ(whyNoCounters("RmProfilingAdminOnly: 0\n", "CapEff:\t0000000000000000\n"), "");
    EXPECT_EQ(whyNoCounters("", ""), "") << "no driver that forbids it";
    EXPECT_EQ(whyNoCounters(closed, "Name:\tx\nCapEff:\t000001ffffffffff\n"), "");
    const std::string why = whyNoCounters(closed, "Name:\tx\nCapEff:\t0000000000000000\n");
    EXPECT_NE(why.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
    EXPECT_EQ(whyNoCounters(closed, ""), why);
}

TEST(Readiness, EachPartIsReadyOrSaysWhyNot) {
    const std::vector<GpuReadiness> rows = gpuReadiness();
    EXPECT_EQ(rows.size(), 3U);
    for (const GpuReadiness& row : rows) {
        EXPECT_EQ(row.ready, row.reason.empty()) << row.name;
    }
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/memory_lookup.h"

#include <gtest/gtest.h>

#include "profiler/analysis/scope_places.h"
#include "tests/profiler/timeline/timeline_script.h"

namespace vitrine::profiler {
namespace {

using test::kGiB;
using test::kMiB;
using test::seconds;

std::shared_ptr<const RunTimeline> threeBlocks() {
    test::TimelineScript script;
    script.addScope(base::ScopeKind::Step, "step", 0, 4, 0, 3, 1632);
    script.alloc(base::MemoryCategory::Weights, "experts", 64.0 * kMiB, 0, -1); // at 0
    script.alloc(base::MemoryCategory::KvCache, "pages", 1.0 * kGiB, 1, -1);    // at 64 MiB
    script.alloc(base::MemoryCategory::Logits, "Logits", 2.0 * kMiB, 2, 3);
    script.addCounter("budget_bytes", 0, 80.0 * kGiB);
    script.finish(4);
    return script.timeline();
}

TEST(MemoryLookup, FindsByTextSizeAndAddress) {
    const auto run = threeBlocks();
    const auto found = [&](const char* typed) { return findAllocations(*run, AllocationQuery::parse(typed)).total; };
    EXPECT_EQ(found("expert"), 1U);
    EXPECT_EQ(found(" LOGITS "), 1U);
    EXPECT_EQ(found("kv_cache"), 1U); // a category
    EXPECT_EQ(found(">64MiB"), 1U);
    EXPECT_EQ(found(">=64MiB"), 2U);
    EXPECT_EQ(found("<64MiB"), 1U);
    EXPECT_EQ(found("2MiB..64MiB"), 2U);
    EXPECT_EQ(found("0x0"), 1U);
    EXPECT_EQ(found("0x400_0000"), 1U);
    EXPECT_EQ(found("0x0..0x400_0001"), 2U);
    EXPECT_EQ(found("0x0.."), 3U);
    EXPECT_EQ(found(">much"), 0U); // no size: looked for as text
    EXPECT_EQ(found(""), 0U);
    EXPECT_TRUE(AllocationQuery::parse("  ").empty());
    EXPECT_EQ(findAllocations(*run, AllocationQuery::parse("0x0.."), 2).rows.size(), 2U);
}

TEST(MemoryLookup, KnowsBudgetAndStepOfAnInstant) {
    const auto run = threeBlocks();
    EXPECT_EQ(budgetAt(*run, seconds(2)), 80 * kGiB);
    const ScopeRow* step = scopeAt(*run, seconds(2), base::ScopeKind::Step);
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(scopeTitle(*run, *step, false), "step 3");
    EXPECT_EQ(scopeTitle(*run, *step, true), "step 3, 1,632 tokens");
    EXPECT_EQ(scopeAt(*run, seconds(2), base::ScopeKind::Layer), nullptr);
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/replayed_steps.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

MemoryChange birthOf(std::uint32_t block) {
    return {100 + block, base::MemorySpace::Device, base::MemoryCategory::Activations, false};
}

TEST(TemplateEvents, KnowTheOtherEndOfEachBlock) {
    const auto events =
        templateEvents({{1, false, 0, 7}, {2, false, 1, 9}, {2, true, 0, 7}, {5, false, 2, 11}}, birthOf);
    ASSERT_EQ(events.size(), 4u);
    EXPECT_EQ(events[0].partner, 2u);
    EXPECT_EQ(events[2].partner, 0u);
    EXPECT_EQ(events[2].change.bytes(), 100u);
    EXPECT_TRUE(events[2].change.death());
    EXPECT_EQ(events[2].def, 0u);
    EXPECT_TRUE(events[1].outlives());
    EXPECT_EQ(events[3].births, 2u);
    EXPECT_EQ(events[3].outliving, 1u);
}

TEST(TemplateEvents, AreNoneWhereRecordsMustBeSorted) {
    EXPECT_TRUE(templateEvents({{2, false, 0, 7}, {1, false, 1, 9}}, birthOf).empty()) << "times fall";
    EXPECT_TRUE(templateEvents({{1, true, 0, 7}}, birthOf).empty()) << "a death without a birth";
    EXPECT_TRUE(templateEvents({{1, false, 0, 7}, {2, true, 0, 7}, {3, true, 0, 7}}, birthOf).empty()) << "two deaths";
    EXPECT_TRUE(templateEvents({{1, false, 0, 7}, {2, true, 0, 7}, {3, false, 1, 7}}, birthOf).empty())
        << "an id comes twice";
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/address_ranges.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;

TEST(AddressRanges, LeavesOutWhatWasNeverUsed) {
    AddressRanges ranges;
    EXPECT_EQ(ranges.view().extent(), 0U);
    EXPECT_EQ(ranges.view().compact(5), 0U);
    ranges.add(kFar, kFar + 100);
    ranges.add(3 * kFar, 3 * kFar + 50);
    ranges.add(kFar + 4096, kFar + 5000); // near enough: the hole stays
    const AddressMap map = ranges.view();
    EXPECT_EQ(map.extent(), 5050U);
    EXPECT_EQ(map.compact(kFar), 0U);
    EXPECT_EQ(map.compact(kFar + 4096), 4096U);
    EXPECT_EQ(map.compact(2 * kFar), 5000U);
    EXPECT_EQ(map.compact(3 * kFar + 20), 5020U);
    EXPECT_EQ(map.compact(UINT64_MAX), 5050U);
}

TEST(AddressRanges, JoinsWhatANewBlockConnects) {
    AddressRanges ranges;
    ranges.add(0, 10);
    ranges.add(4 * kJoinedGap, 4 * kJoinedGap + 10);
    ranges.add(8 * kJoinedGap, 8 * kJoinedGap + 10);
    EXPECT_EQ(ranges.view().extent(), 30U);
    ranges.add(5, 8 * kJoinedGap - 1);
    EXPECT_EQ(ranges.view().extent(), 8 * kJoinedGap + 10);
    ranges.add(1, 2);
    EXPECT_EQ(ranges.view().extent(), 8 * kJoinedGap + 10);
}

} // namespace
} // namespace vitrine::profiler

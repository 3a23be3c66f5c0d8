// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/slot_holders.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

using Requests = std::vector<std::int32_t>;

/// A request that lost its slot runs again in another one; a second event about the same change counts once.
TEST(SlotHolders, PreemptedRequestsComeBack) {
    SlotHolders holders;
    holders.take(3, 10, 7);
    holders.take(3, 12, 7);
    holders.take(0, 12, 2);
    holders.leave(20, 7);
    holders.leave(20, 7);
    holders.take(1, 30, 7);
    holders.take(0, 40, 9); // the end of 2 was lost
    holders.leave(50, 2);
    EXPECT_TRUE(holders.at(9).empty());
    EXPECT_EQ(holders.at(15), (Requests{2, 7}));
    EXPECT_EQ(holders.at(25), (Requests{2}));
    EXPECT_EQ(holders.at(35), (Requests{2, 7}));
    EXPECT_EQ(holders.at(60), (Requests{7, 9}));
}

TEST(SlotHolders, RowsAroundMost) {
    EXPECT_EQ(firstOfMost({}, 10, 4), 4);
    EXPECT_EQ(firstOfMost({5, 9}, 10, 0), 0);           // in sight already
    EXPECT_EQ(firstOfMost({100, 101, 105}, 10, 0), 98); // in the middle
    EXPECT_EQ(firstOfMost({3, 500, 501, 502}, 10, 0), 497);
    EXPECT_EQ(firstOfMost({3, 500}, 10, 495), 495);
    EXPECT_EQ(firstOfMost({1, 2}, 10, 600), 0);
}

} // namespace
} // namespace vitrine::profiler

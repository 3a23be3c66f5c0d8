// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/percentile.h"

#include <gtest/gtest.h>

namespace vitrine::base {
namespace {

TEST(Percentile, IsTheNearestRank) {
    EXPECT_EQ(percentile({}, 0.5), std::nullopt);
    EXPECT_EQ(percentile({1, 2, 3, 4}, 0.5), 2.0);
    EXPECT_EQ(percentile({1, 2, 3, 4}, 0.95), 4.0);
    EXPECT_EQ(percentile({7}, 0.01), 7.0);
}

TEST(Percentile, TheMedianNeedsNoOrder) {
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(median({3, 1, 2}), 2.0);
    EXPECT_EQ(median({4, 3, 1, 2}), 2.0);
}

} // namespace
} // namespace vitrine::base

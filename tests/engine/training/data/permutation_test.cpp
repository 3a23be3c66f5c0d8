// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/permutation.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <vector>

namespace vitrine::engine {
namespace {

TEST(Permutation, HasEveryNumberOnce) {
    for (const std::int64_t count : {0, 1, 2, 17, 1000}) {
        std::vector<std::int64_t> order = randomPermutation(count, seedKey(3, SeedStream::DataOrder), 0);
        EXPECT_EQ(order, randomPermutation(count, seedKey(3, SeedStream::DataOrder), 0));
        std::sort(order.begin(), order.end());
        std::vector<std::int64_t> all(static_cast<std::size_t>(count));
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(order, all);
    }
}

TEST(Permutation, SeedsStreamsAndNumbersGiveOthers) {
    const auto order = randomPermutation(50, seedKey(3, SeedStream::DataOrder), 0);
    EXPECT_NE(order, randomPermutation(50, seedKey(4, SeedStream::DataOrder), 0));
    EXPECT_NE(order, randomPermutation(50, seedKey(3, SeedStream::DataSplit), 0));
    EXPECT_NE(order, randomPermutation(50, seedKey(3, SeedStream::DataOrder), 1));
}

TEST(Permutation, AllAreAsLikely) {
    std::map<std::vector<std::int64_t>, int> counts;
    for (std::uint64_t number = 0; number < 6000; ++number) {
        ++counts[randomPermutation(3, seedKey(1, SeedStream::DataOrder), number)];
    }
    ASSERT_EQ(counts.size(), 6U);
    for (const auto& [order, count] : counts) {
        EXPECT_NEAR(count, 1000, 150); // five standard deviations
    }
}

} // namespace
} // namespace vitrine::engine

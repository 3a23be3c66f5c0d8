// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/policy/group_advantages.h"

#include <cmath>
#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

TEST(GroupAdvantages, AreRelativeToTheGroup) {
    const std::vector<float> rewards = {1, 10, 0, 20, 2, 30};
    const std::vector<std::int64_t> groups = {7, -1, 7, -1, 7, -1};
    const std::vector<float> out = groupAdvantages(rewards, groups);
    EXPECT_NEAR(out[0], 0, 1e-6);
    EXPECT_NEAR(out[2], -1 / (1 + 1e-6), 1e-6);
    EXPECT_NEAR(out[4], 1 / (1 + 1e-6), 1e-6);
    EXPECT_NEAR(out[1], -10 / (10 + 1e-6), 1e-6);
    EXPECT_NEAR(out[5], 10 / (10 + 1e-6), 1e-6);
}

TEST(GroupAdvantages, EqualRewardsGiveNothing) {
    for (const float advantage : groupAdvantages(std::vector<float>(4, 0.7F), std::vector<std::int64_t>(4, 3))) {
        EXPECT_EQ(advantage, 0);
    }
}

TEST(GroupAdvantages, ALonelyRowIsFound) {
    EXPECT_EQ(rowAloneInGroup(std::vector<std::int64_t>{1, 2, 1, 2}), std::nullopt);
    EXPECT_EQ(rowAloneInGroup(std::vector<std::int64_t>{1, 2, 1, 5, 2, 6}), 3U);
}

} // namespace
} // namespace vitrine::engine

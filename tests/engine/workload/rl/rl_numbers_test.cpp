// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/rl_numbers.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace vitrine::engine {
namespace {

RolloutGroup groupOf(const std::vector<double>& rewards) {
    RolloutGroup out;
    for (const double reward : rewards) {
        out.answers.emplace_back().reward = reward;
    }
    return out;
}

/// Answers are right or wrong, so that their own quartiles would be 0 and 1.
TEST(RlNumbers, TheMiddleHalfIsThatOfTheGroups) {
    const std::vector<RolloutGroup> groups{groupOf({0, 0, 0, 0}), groupOf({1, 0, 0, 0}), groupOf({1, 1, 0, 0}),
                                           groupOf({1, 1, 1, 0}), groupOf({1, 1, 1, 1})};
    RlStep step;
    addGroupNumbers(step, groups);
    EXPECT_DOUBLE_EQ(step.reward, 0.5);
    EXPECT_DOUBLE_EQ(step.rewardLow, 0.25);
    EXPECT_DOUBLE_EQ(step.rewardHigh, 0.75);
}

TEST(RlNumbers, AGroupWithoutRewardsIsNone) {
    std::vector<RolloutGroup> groups{groupOf({1, 1})};
    groups.emplace_back().answers.resize(2);
    RlStep step;
    addGroupNumbers(step, groups);
    EXPECT_EQ(step.reward, 1);
    EXPECT_EQ(step.rewardLow, 1);
    groups.erase(groups.begin());
    addGroupNumbers(step, groups);
    EXPECT_TRUE(std::isnan(step.reward) && std::isnan(step.rewardLow) && std::isnan(step.rewardHigh));
}

} // namespace
} // namespace vitrine::engine

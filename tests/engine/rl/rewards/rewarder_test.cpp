// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/rewarder.h"

#include <gtest/gtest.h>
#include <limits>

#include "base/error.h"
#include "tests/engine/rl/rewards/attempts.h"

namespace vitrine::engine {
namespace {

/// Judges by the length of the answer.
class LengthSource final : public ProblemSource {
public:
    Problem training(std::int64_t) const override { return {}; }
    std::int64_t evaluations() const override { return 0; }
    Problem evaluation(std::int64_t) const override { return {}; }
    double reward(const Problem& problem, const std::string& answer) const override {
        if (answer.empty()) {
            throw base::BadInput(problem.name + ": no answer");
        }
        return answer == "nan" ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(answer.size());
    }
    bool judges() const override { return true; }
    std::string digest() const override { return "length"; }
};

TEST(SourceRewarder, JudgesAtOnceAndOnlyOnce) {
    const LengthSource source;
    const auto rewarder = sourceRewarder(source);
    EXPECT_TRUE(rewarder->take(true).empty());
    rewarder->judge(test::attempt(7, "four"));
    rewarder->judge(test::attempt(8, "nan"));
    rewarder->judge(test::attempt(9, ""));
    EXPECT_EQ(rewarder->waiting(), 3);
    const std::vector<Judgement> taken = rewarder->take(false);
    ASSERT_EQ(taken.size(), 3U);
    EXPECT_EQ(taken[0].id, 7);
    EXPECT_EQ(taken[0].reward, 4.0);
    EXPECT_EQ(taken[0].error, "");
    EXPECT_FALSE(taken[1].reward);
    EXPECT_EQ(taken[1].error, "sums 1: the reward is no finite number");
    EXPECT_FALSE(taken[2].reward);
    EXPECT_EQ(taken[2].error, "sums 1: no answer");
    EXPECT_EQ(rewarder->waiting(), 0);
    EXPECT_TRUE(rewarder->take(false).empty());
}

TEST(SourceRewarder, ForgetsWhatIsDropped) {
    const LengthSource source;
    const auto rewarder = sourceRewarder(source);
    rewarder->judge(test::attempt(1));
    rewarder->drop();
    EXPECT_EQ(rewarder->waiting(), 0);
    EXPECT_TRUE(rewarder->take(false).empty());
}

} // namespace
} // namespace vitrine::engine

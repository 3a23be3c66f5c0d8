// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/learning_rate.h"

#include <gtest/gtest.h>
#include <vector>

namespace vitrine::engine {
namespace {

void expectRates(const LearningRate& rate, const std::vector<double>& wanted) {
    for (std::size_t step = 0; step < wanted.size(); ++step) {
        EXPECT_NEAR(rate.at(static_cast<std::int64_t>(step)), 2 * wanted[step], 1e-11) << step;
    }
}

// The numbers are those of get_*_schedule_with_warmup of transformers, with 3 steps of warm-up and 10 in all.
TEST(LearningRate, EqualsTheSchedulesOfTransformers) {
    const double third = 1.0 / 3;
    expectRates({RateSchedule::Constant, 2, 3, 10, 0}, {0, third, 2 * third, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    expectRates({RateSchedule::Linear, 2, 3, 10, 0},
                {0, third, 2 * third, 1, 0.857142857143, 0.714285714286, 0.571428571429, 0.428571428571, 0.285714285714,
                 0.142857142857, 0, 0});
    expectRates({RateSchedule::Cosine, 2, 3, 10, 0},
                {0, third, 2 * third, 1, 0.950484433951, 0.811744900929, 0.611260466978, 0.388739533022, 0.188255099071,
                 0.0495155660488, 0});
    // get_cosine_with_min_lr_schedule_with_warmup, min_lr_rate 0.1
    expectRates({RateSchedule::Cosine, 2, 3, 10, 0.1},
                {0, third, 2 * third, 1, 0.955435990556, 0.830570410836, 0.65013442028, 0.44986557972, 0.269429589164,
                 0.144564009444, 0.1});
}

TEST(LearningRate, EndsAtTheMinimumAndStaysThere) {
    const LearningRate linear{RateSchedule::Linear, 2, 0, 4, 0.25};
    EXPECT_DOUBLE_EQ(linear.at(0), 2);
    EXPECT_DOUBLE_EQ(linear.at(2), 1.25);
    EXPECT_DOUBLE_EQ(linear.at(4), 0.5);
    EXPECT_DOUBLE_EQ(linear.at(400), 0.5);
    const LearningRate cosine{RateSchedule::Cosine, 2, 0, 4, 0};
    EXPECT_DOUBLE_EQ(cosine.at(5), 0);
    const LearningRate onlyWarmup{RateSchedule::Linear, 2, 4, 4, 0};
    EXPECT_DOUBLE_EQ(onlyWarmup.at(3), 1.5);
    EXPECT_DOUBLE_EQ(onlyWarmup.at(4), 2);
    EXPECT_DOUBLE_EQ(onlyWarmup.at(5), 0);
}

TEST(LearningRate, NamesAreReadAgain) {
    for (const auto schedule : {RateSchedule::Constant, RateSchedule::Linear, RateSchedule::Cosine}) {
        EXPECT_EQ(rateScheduleByName(rateScheduleName(schedule)), schedule);
    }
    EXPECT_FALSE(rateScheduleByName("polynomial").has_value());
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/attention/normal_numbers.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace vitrine::engine {
namespace {

TEST(NormalNumbers, DependOnSeedStreamAndPlaceAlone) {
    std::vector<float> whole(1000);
    normalNumbers(7, 3, 0, whole);
    for (const std::size_t begin : {0, 8, 160, 992}) {
        std::vector<float> part(std::min<std::size_t>(13, whole.size() - begin));
        normalNumbers(7, 3, static_cast<std::int64_t>(begin), part);
        for (std::size_t i = 0; i < part.size(); ++i) {
            ASSERT_EQ(part[i], whole[begin + i]) << begin + i;
        }
    }
    std::vector<float> other(1000);
    normalNumbers(8, 3, 0, other);
    EXPECT_NE(other, whole);
    normalNumbers(7, 4, 0, other);
    EXPECT_NE(other, whole);
}

TEST(NormalNumbers, AreNormallyDistributed) {
    constexpr int kCount = 1 << 20;
    std::vector<float> numbers(kCount);
    normalNumbers(1, 0, 0, numbers);
    double sum = 0, squares = 0, fourth = 0, neighbours = 0, beyondTwo = 0, largest = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double x = numbers[i];
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        neighbours += i > 0 ? x * numbers[i - 1] : 0;
        beyondTwo += x > 2 ? 1 : 0;
        largest = std::max(largest, std::fabs(x));
    }
    EXPECT_NEAR(sum / kCount, 0, 5e-3);
    EXPECT_NEAR(squares / kCount, 1, 7e-3);
    EXPECT_NEAR(fourth / kCount, 3, 5e-2);
    EXPECT_NEAR(neighbours / kCount, 0, 5e-3);
    EXPECT_NEAR(beyondTwo / kCount, 0.02275, 8e-4);
    EXPECT_GT(largest, 4);
    EXPECT_LT(largest, 4.4);
}

} // namespace
} // namespace vitrine::engine

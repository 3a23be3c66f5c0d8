// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/data_split.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "base/error.h"

namespace vitrine::engine {
namespace {

TEST(DataSplit, EveryRowIsOnOneSide) {
    const DataSplit split = splitRows(100, {0.2, 0, 7}, "F");
    EXPECT_EQ(split.validation.size(), 20U);
    EXPECT_EQ(split.training.size(), 80U);
    EXPECT_TRUE(std::is_sorted(split.training.begin(), split.training.end()));
    EXPECT_TRUE(std::is_sorted(split.validation.begin(), split.validation.end()));
    std::vector<std::int64_t> all = split.training;
    all.insert(all.end(), split.validation.begin(), split.validation.end());
    std::sort(all.begin(), all.end());
    for (std::int64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
    }
}

TEST(DataSplit, DependsOnTheSeedAlone) {
    EXPECT_EQ(splitRows(100, {0.2, 0, 7}, "F").validation, splitRows(100, {0.2, 0, 7}, "F").validation);
    EXPECT_NE(splitRows(100, {0.2, 0, 7}, "F").validation, splitRows(100, {0.2, 0, 8}, "F").validation);
}

TEST(DataSplit, TakesCountsAndFractions) {
    EXPECT_TRUE(splitRows(5, {}, "F").validation.empty());
    EXPECT_EQ(splitRows(5, {0, 4, 0}, "F").validation.size(), 4U);
    EXPECT_EQ(splitRows(5, {0.9, 1, 0}, "F").validation.size(), 1U);
    EXPECT_EQ(splitRows(5, {0.001, 0, 0}, "F").validation.size(), 1U);
}

TEST(DataSplit, SomethingMustBeLeftToTrain) {
    EXPECT_THROW(splitRows(5, {0, 5, 0}, "F"), base::BadInput);
    EXPECT_THROW(splitRows(1, {0.1, 0, 0}, "F"), base::BadInput);
    EXPECT_THROW(splitRows(0, {}, "F"), base::BadInput);
    EXPECT_THROW(splitRows(5, {1, 0, 0}, "F"), base::BadInput);
    EXPECT_THROW(splitRows(5, {-0.1, 0, 0}, "F"), base::BadInput);
    EXPECT_THROW(splitRows(5, {0, -1, 0}, "F"), base::BadInput);
    EXPECT_THROW(splitRows(5, {std::numeric_limits<double>::quiet_NaN(), 0, 0}, "F"), base::BadInput);
}

} // namespace
} // namespace vitrine::engine

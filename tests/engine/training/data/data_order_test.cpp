// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/data_order.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using Indices64 = std::vector<std::int64_t>;

DataOrderOptions orderOptions(std::int64_t sequences, std::int64_t size, std::int64_t batches, std::int64_t epochs) {
    DataOrderOptions options;
    options.sequences = sequences;
    options.microBatchSize = size;
    options.microBatches = batches;
    options.epochs = epochs;
    options.seed = 11;
    return options;
}

/// All indices of steps [0, steps).
Indices64 streamOf(DataOrder& order, std::int64_t steps, std::int64_t batches) {
    Indices64 all;
    for (std::int64_t step = 0; step < steps; ++step) {
        for (std::int64_t batch = 0; batch < batches; ++batch) {
            const Indices64 some = order.indices(step, batch);
            all.insert(all.end(), some.begin(), some.end());
        }
    }
    return all;
}

TEST(DataOrder, EachEpochHasEverySequenceOnce) {
    DataOrder order(orderOptions(7, 2, 3, 4));
    EXPECT_EQ(order.steps(), 5);
    const Indices64 all = streamOf(order, order.steps(), 3);
    ASSERT_EQ(all.size(), 28U);
    std::set<Indices64> orders;
    for (std::ptrdiff_t epoch = 0; epoch < 4; ++epoch) {
        Indices64 one(all.begin() + 7 * epoch, all.begin() + 7 * (epoch + 1));
        orders.insert(one);
        std::sort(one.begin(), one.end());
        EXPECT_EQ(one, (Indices64{0, 1, 2, 3, 4, 5, 6}));
    }
    EXPECT_EQ(orders.size(), 4U);
}

TEST(DataOrder, AnyStepCanBeAskedFirst) {
    DataOrder one(orderOptions(7, 2, 3, 0));
    const Indices64 all = streamOf(one, 6, 3);
    for (std::int64_t step = 5; step >= 0; --step) {
        DataOrder fresh(orderOptions(7, 2, 3, 0));
        const auto begin = all.begin() + step * 6 + 2;
        EXPECT_EQ(fresh.indices(step, 1), Indices64(begin, begin + 2));
        EXPECT_EQ(one.indices(step, 1), Indices64(begin, begin + 2));
    }
}

TEST(DataOrder, TheOrderOfTheFileIsKept) {
    DataOrderOptions options = orderOptions(3, 2, 1, 2);
    options.shuffle = false;
    DataOrder order(options);
    EXPECT_EQ(streamOf(order, 3, 1), (Indices64{0, 1, 2, 0, 1, 2}));
    EXPECT_TRUE(order.indices(3, 0).empty());
}

TEST(DataOrder, TheLastStepMayBeSmaller) {
    DataOrder order(orderOptions(5, 2, 2, 1));
    EXPECT_EQ(order.steps(), 2);
    EXPECT_EQ(order.indices(1, 0).size(), 1U);
    EXPECT_TRUE(order.indices(1, 1).empty());
    EXPECT_DOUBLE_EQ(order.epochAfter(1), 0.8);
    EXPECT_DOUBLE_EQ(order.epochAfter(2), 1);
    EXPECT_EQ(DataOrder(orderOptions(5, 2, 2, 0)).steps(), 0);
}

TEST(DataOrder, WrongArgumentsAreRefused) {
    EXPECT_THROW(DataOrder(orderOptions(0, 1, 1, 1)), base::Internal);
    EXPECT_THROW(DataOrder(orderOptions(1, 0, 1, 1)), base::Internal);
    EXPECT_THROW(DataOrder(orderOptions(1, 1, 0, 1)), base::Internal);
    EXPECT_THROW(DataOrder(orderOptions(1, 1, 1, -1)), base::Internal);
    DataOrder order(orderOptions(3, 1, 2, 1));
    EXPECT_THROW(order.indices(-1, 0), base::Internal);
    EXPECT_THROW(order.indices(0, 2), base::Internal);
}

} // namespace
} // namespace vitrine::engine

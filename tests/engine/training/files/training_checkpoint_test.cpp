// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/training_checkpoint.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

TEST(TrainingCheckpoint, AsManyAsAreThereAtTheSameTime) {
    EXPECT_EQ(checkpointsAtOnce(1, 100, 0, 0, 0), 0) << "none is asked for";
    EXPECT_EQ(checkpointsAtOnce(1, 100, 30, 0, 0), 3) << "all stay";
    EXPECT_EQ(checkpointsAtOnce(1, 100, 10, 2, 0), 3) << "the kept ones and the one that is being written";
    EXPECT_EQ(checkpointsAtOnce(1, 20, 10, 5, 0), 2) << "no more than are written";
    EXPECT_EQ(checkpointsAtOnce(61, 100, 30, 0, 2), 1) << "of 60 there is one already";
    EXPECT_EQ(checkpointsAtOnce(21, 100, 10, 2, 2), 1) << "kept ones of earlier runs make room";
    EXPECT_EQ(checkpointsAtOnce(21, 100, 10, 2, 7), 1);
    EXPECT_EQ(checkpointsAtOnce(101, 100, 10, 2, 0), 0) << "no step is left";
}

} // namespace
} // namespace vitrine::engine

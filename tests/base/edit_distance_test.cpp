// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/edit_distance.h"

#include <gtest/gtest.h>

namespace vitrine::base {
namespace {

TEST(EditDistance, CountsInsertionsRemovalsAndReplacements) {
    EXPECT_EQ(editDistance("", ""), 0u);
    EXPECT_EQ(editDistance("list", "list"), 0u);
    EXPECT_EQ(editDistance("", "ls"), 2u);
    EXPECT_EQ(editDistance("list", "ls"), 2u);
    EXPECT_EQ(editDistance("generat", "generate"), 1u);
    EXPECT_EQ(editDistance("btach", "batch"), 2u);
    EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
}

} // namespace
} // namespace vitrine::base

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/stored_pyramid.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

std::vector<PyramidNode> nodesOf(std::uint64_t first, std::size_t count, std::uint64_t each) {
    std::vector<PyramidNode> nodes(count);
    for (std::size_t i = 0; i < count; ++i) {
        nodes[i].firstEvent = first + i * each;
        nodes[i].count = each;
    }
    return nodes;
}

TEST(StoredLevels, AnswerFromTheFinestThatCoversMost) {
    StoredLevels levels;
    EXPECT_EQ(levels.events(), 0u);
    EXPECT_TRUE(levels.best().empty());
    levels.add(1, nodesOf(0, 1, 80));
    levels.add(0, nodesOf(50, 5, 10));
    levels.add(0, nodesOf(0, 5, 10));
    EXPECT_EQ(levels.events(), 100u);
    const StoredPyramid best = levels.best();
    ASSERT_EQ(best.size(), 10u);
    EXPECT_EQ(best[0].firstEvent, 0u);
    EXPECT_EQ(best[9].firstEvent, 90u);
}

TEST(StoredLevels, ForgetALevelThatIsFinerThanAnyScreen) {
    StoredLevels levels;
    for (std::size_t chunk = 0; chunk < 10; ++chunk) {
        levels.add(0, nodesOf(chunk * 80'000, 8'000, 10));
        levels.add(1, nodesOf(chunk * 80'000, 1'000, 80));
    }
    EXPECT_EQ(levels.events(), 800'000u);
    EXPECT_EQ(levels.best().size(), 10'000u);
    levels.add(0, nodesOf(800'000, 10, 10));
    EXPECT_EQ(levels.events(), 800'000u) << "what was forgotten does not come back in part";
}

} // namespace
} // namespace vitrine::profiler

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/group_memory.h"

#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace vitrine::engine {
namespace {

constexpr const char* kStat =
    " S 1 77 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 5000000 321 18446744073709551615 1\n";

TEST(GroupMemory, ReadsAProcessWhateverItsName) {
    for (const char* name : {"(sh)", "(a b)", "(x) R 1 5 (y)"}) {
        const auto memory = readProcessStat(std::string("99 ") + name + kStat);
        ASSERT_TRUE(memory) << name;
        EXPECT_EQ(memory->group, 77);
        EXPECT_EQ(memory->pages, 321U);
    }
    for (const char* text : {"", "99 (sh", "99 (sh) S 1 77", "99 (sh) S 1 x 1 0"}) {
        EXPECT_FALSE(readProcessStat(text)) << text;
    }
}

TEST(GroupMemory, KnowsThisProcess) {
    const auto bytes = residentByGroup();
    const auto own = bytes.find(::getpgrp());
    ASSERT_NE(own, bytes.end());
    EXPECT_GT(own->second, 100'000U);
}

} // namespace
} // namespace vitrine::engine

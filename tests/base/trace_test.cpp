// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/trace.h"

#include <gtest/gtest.h>
#include <set>

namespace vitrine::base {
namespace {

TEST(Trace, EveryCategoryHasItsOwnName) {
    std::set<std::string_view> names;
    for (int i = 0; i < kCategoryCount; ++i) {
        names.insert(categoryName(static_cast<MemoryCategory>(i)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kCategoryCount));
    EXPECT_EQ(categoryName(MemoryCategory::Untracked), "untracked");
    EXPECT_EQ(categoryName(MemoryCategory::Weights), "weights");
    EXPECT_EQ(categoryName(MemoryCategory::KvCache), "kv_cache");
    EXPECT_EQ(categoryName(MemoryCategory::Logits), "logits");
    EXPECT_EQ(categoryName(MemoryCategory::BlockMask), "block_mask");
    EXPECT_EQ(categoryName(MemoryCategory::Other), "other");
}

TEST(Trace, ACategoryOutOfRangeIsOther) {
    EXPECT_EQ(categoryName(static_cast<MemoryCategory>(200)), "other");
}

} // namespace
} // namespace vitrine::base

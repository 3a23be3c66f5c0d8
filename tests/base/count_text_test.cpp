// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/count_text.h"

#include <gtest/gtest.h>

namespace vitrine::base {
namespace {

TEST(CountText, OneHasNoPlural) {
    EXPECT_EQ(countText(0, "turn"), "0 turns");
    EXPECT_EQ(countText(1, "turn"), "1 turn");
    EXPECT_EQ(countText(12, "turn"), "12 turns");
}

} // namespace
} // namespace vitrine::base

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/quoted_text.h"

#include <gtest/gtest.h>

namespace vitrine::base {
namespace {

TEST(QuotedText, IsOneShortLine) {
    EXPECT_EQ(quotedText("gemm"), "\"gemm\"");
    EXPECT_EQ(quotedText("a\nb\x7f"), "\"a\\nb\\u007f\"");
    EXPECT_EQ(quotedText(std::string(81, 'x')), "\"" + std::string(80, 'x') + "\"...");
    EXPECT_EQ(quotedText("\xff"), "\"\\ufffd\"") << "what is no UTF-8 is replaced";
}

} // namespace
} // namespace vitrine::base

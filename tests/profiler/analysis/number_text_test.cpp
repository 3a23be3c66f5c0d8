// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/number_text.h"

#include <gtest/gtest.h>
#include <limits>

namespace vitrine::profiler {
namespace {

TEST(NumberText, BytesHaveNoBreakSpacesAndARealMinus) {
    EXPECT_EQ(bytesText(std::uint64_t{0}), "0\u00A0B");
    EXPECT_EQ(bytesText(std::optional<std::uint64_t>()), "–");
    EXPECT_EQ(signedBytesText(0), "0");
    EXPECT_EQ(signedBytesText(2048), "+" + bytesText(std::uint64_t{2048}));
    EXPECT_EQ(signedBytesText(-2048), "\u2212" + bytesText(std::uint64_t{2048}));
    EXPECT_EQ(exactBytesText(39'535'509'504), "39,535,509,504\u00A0B");
    EXPECT_EQ(gibText(3ULL << 29), "1.50");
    EXPECT_EQ(countText(-1632), "\u22121,632");
    EXPECT_EQ(addressText(0x68e000000), "0x0006_8e00_0000");
}

TEST(NumberText, InstantsFollowTheRuler) {
    EXPECT_EQ(instantText(10'930'000'000, 10'000'000), "10.93\u00A0s");
    EXPECT_EQ(instantText(-1'500'000, 1'000), "\u22121.500\u00A0ms");
    EXPECT_EQ(instantText(123'456'000'000), "123.5\u00A0s");
}

TEST(NumberText, HalvesGoAwayFromZeroAndZeroHasNoSign) {
    EXPECT_EQ(shareText(0.0625), "6.3\u00A0%");
    EXPECT_EQ(shareText(-0.0625), "-6.3\u00A0%");
    EXPECT_EQ(shareText(-0.0), "0.0\u00A0%");
    EXPECT_EQ(ratioText(0.125), "0.13x");
    EXPECT_EQ(ratioText(9.995), "9.99x"); // the double lies below the half
    EXPECT_EQ(ratioText(1286.2), "1,286x");
    EXPECT_EQ(ratioText(std::numeric_limits<double>::infinity()), "–");
}

} // namespace
} // namespace vitrine::profiler

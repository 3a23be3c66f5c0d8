// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/philox.h"

#include <gtest/gtest.h>
#include <set>

namespace vitrine::base {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of the Random123 distribution (kat_vectors, philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
    EXPECT_EQ(philox4x32({0, 0}, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff}, ~std::uint64_t{0}, ~std::uint64_t{0}),
              (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox4x32({0xa4093822, 0x299f31d0}, 0x85a308d3243f6a88, 0x0370734413198a2e),
              (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, BothHalvesOfASeedMatter) {
    EXPECT_NE(philoxKey(1, 7).seed, philoxKey(std::uint64_t{1} << 33, 7).seed);
    EXPECT_EQ(philoxKey(5, 7).seed, 5U);
    EXPECT_EQ(philoxKey(5, 7).stream, 7U);
}

TEST(Philox, CountersGiveDifferentWords) {
    std::set<Words> seen;
    for (std::uint64_t position = 0; position < 100; ++position) {
        for (std::uint64_t index = 0; index < 10; ++index) {
            seen.insert(philox4x32({1, 2}, position, index));
        }
    }
    EXPECT_EQ(seen.size(), 1000U);
}

TEST(Philox, UniformStaysInsideTheOpenInterval) {
    EXPECT_GT(uniformOpen(0), 0.0F);
    EXPECT_LT(uniformOpen(0xffffffff), 1.0F);
    double sum = 0;
    constexpr int kDraws = 40000;
    for (int i = 0; i < kDraws; ++i) {
        sum += uniformOpen(philox4x32({3, 4}, static_cast<std::uint64_t>(i), 0)[0]);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
}

} // namespace
} // namespace vitrine::base

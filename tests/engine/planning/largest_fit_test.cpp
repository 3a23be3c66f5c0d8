// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/planning/largest_fit.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

TEST(LargestFit, FindsTheEdgeOfALineAndOfAStaircase) {
    for (const std::uint64_t step : {1U, 64U}) {
        for (const std::uint64_t budget : {0U, 99U, 100U, 7'777U, 1'000'000U}) {
            int tries = 0;
            const auto bytes = [step](std::int64_t n) {
                return 100 + 7 * ((static_cast<std::uint64_t>(n) + step - 1) / step) * step;
            };
            const auto probe = [&](std::int64_t n) -> std::optional<std::uint64_t> {
                ++tries;
                return bytes(n) <= budget ? std::optional(bytes(n)) : std::nullopt;
            };
            const std::int64_t found = largestFit(1, 4096, probe, [budget] { return budget; });
            EXPECT_TRUE(found == 0 || bytes(found) <= budget) << budget;
            EXPECT_TRUE(found == 4096 || bytes(found + 1) > budget) << budget;
            EXPECT_LT(tries, 24);
        }
    }
}

/// A plan says what a run would need that does not fit: with both ends known the line leads straight to the edge.
TEST(LargestFit, UsesWhatDidNotFitToo) {
    const auto bytes = [](std::int64_t n) { return 1'000 + 7 * static_cast<std::uint64_t>(n); };
    const std::uint64_t budget = bytes(73'123);
    FitSearch search(1, 99'999);
    search.tried(100'000, false, bytes(100'000), budget);
    int tries = 0;
    while (const auto n = search.next()) {
        ++tries;
        search.tried(*n, bytes(*n) <= budget, bytes(*n), budget);
    }
    EXPECT_EQ(search.found(), 73'123);
    EXPECT_LT(tries, 6);
    FitSearch none(1, 99'999);
    none.tried(*none.next(), false, std::nullopt, budget);
    EXPECT_FALSE(none.next().has_value()) << "what 1 needs, all need";
    EXPECT_EQ(none.found(), 0);
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/draft_pace.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace vitrine::engine {
namespace {

constexpr CheckCost kCheap{0.05, 0.02};

struct Paced {
    int checks = 0;
    std::int64_t tokens = 0; ///< of all steps
    double time = 0;         ///< in plain steps
};

/// Decodes `steps` steps of a text whose drafted tokens are right with this probability.
Paced decode(DraftPace& pace, int steps, double acceptance, const CheckCost& cost, std::int64_t limit = 8) {
    std::mt19937 random(5);
    std::bernoulli_distribution right(acceptance);
    Paced out;
    for (int step = 0; step < steps; ++step) {
        const std::int64_t length = pace.next(1000, limit, cost);
        ++out.tokens;
        out.time += 1;
        if (length > 0) {
            std::int64_t kept = 0;
            while (kept < length && right(random)) {
                ++kept;
            }
            pace.noteChecked(length, kept);
            ++out.checks;
            out.tokens += kept;
            out.time += cost.step + cost.token * static_cast<double>(length);
        }
    }
    return out;
}

TEST(DraftPace, DraftsHaveFewLengths) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t most = 0; most <= 22; ++most) {
        if (draftLength(most, 22) == most) {
            lengths.push_back(most);
        }
    }
    EXPECT_EQ(lengths, (std::vector<std::int64_t>{0, 1, 2, 4, 8, 12, 16, 22}));
    EXPECT_EQ(draftLength(7, 5), 5) << "the limit is one of them";
    EXPECT_EQ(draftLength(3, 5), 2);
    EXPECT_EQ(draftLength(-1, 5), 0);
}

TEST(DraftPace, BeginsWithTrustAndStaysLongWhereTokensAreRight) {
    DraftPace pace;
    EXPECT_EQ(pace.next(1000, 5, kCheap), 5);
    EXPECT_EQ(pace.next(3, 5, kCheap), 2) << "near its end";
    EXPECT_EQ(pace.next(0, 5, kCheap), 0);
    EXPECT_FALSE(pace.rests()) << "the end of a request is no rest";
    pace.noteChecked(5, 5);
    EXPECT_EQ(pace.next(1000, 5, kCheap), 5);
}

TEST(DraftPace, UselessDraftsCostNearlyNothing) {
    DraftPace pace;
    const Paced done = decode(pace, 1000, 0, kCheap);
    EXPECT_LT(done.checks, 40);
    EXPECT_LT(done.time, 1.005 * 1000);
    DraftPace dear;
    EXPECT_LT(decode(dear, 1000, 0.2, {0.05, 0.5}).time, 1.1 * 1000) << "where each token is expensive";
}

TEST(DraftPace, GainsAtEveryAcceptanceThatPays) {
    for (const double acceptance : {0.3, 0.6, 0.9}) {
        DraftPace pace;
        const Paced done = decode(pace, 2000, acceptance, kCheap);
        EXPECT_GT(static_cast<double>(done.tokens) / done.time, 1 + 0.7 * acceptance) << acceptance;
    }
}

TEST(DraftPace, DraftsAreShorterWhereTokensAreExpensive) {
    const auto longest = [](const CheckCost& cost) {
        DraftPace pace;
        for (int i = 0; i < 20; ++i) {
            pace.noteChecked(4, 2); // two of three tokens are right
        }
        return pace.next(1000, 16, cost);
    };
    EXPECT_GT(longest({0.05, 0.01}), longest({0.05, 0.2}));
    EXPECT_GT(longest({0.05, 0.2}), 0);
}

TEST(DraftPace, WakesWhenTheTextIsCopiedAgain) {
    DraftPace pace;
    decode(pace, 300, 0, kCheap);
    const Paced again = decode(pace, 200, 1, kCheap);
    EXPECT_GT(again.tokens, 200 * 5) << "a rest is short enough";
    EXPECT_EQ(pace.next(1000, 8, kCheap), 8);
}

TEST(DraftPace, ARestEndsAfterItsSteps) {
    DraftPace pace;
    int drafts = 0;
    while (!pace.rests()) {
        const std::int64_t length = pace.next(1000, 4, kCheap);
        if (length > 0) {
            pace.noteChecked(length, 0);
            ASSERT_LT(++drafts, 40);
        }
    }
    int steps = 0;
    while (pace.rests()) {
        EXPECT_EQ(pace.next(1000, 4, kCheap), 0);
        ++steps;
    }
    EXPECT_GT(steps, 0);
    EXPECT_EQ(pace.next(1000, 4, kCheap), 1) << "one token asks again";
}

} // namespace
} // namespace vitrine::engine

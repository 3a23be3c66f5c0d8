// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/ngram_index.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace vitrine::engine {
namespace {

using Ids = std::vector<std::int32_t>;

Ids ngramDraft(const Ids& text, const NgramSizes& sizes, std::int64_t tokens) {
    return NgramIndex(sizes).draft(text, tokens);
}

/// The place that the index is to find, by looking at every place.
std::int64_t placeBySearch(const Ids& text, const NgramSizes& sizes) {
    const auto end = static_cast<std::int64_t>(text.size());
    std::int64_t best = 0;
    std::int64_t found = -1;
    for (std::int64_t place = end - 1; place >= sizes.shortest; --place) {
        std::int64_t equal = 0;
        while (equal < std::min(sizes.longest, place) && text.end()[-1 - equal] == text.begin()[place - 1 - equal]) {
            ++equal;
        }
        if (equal >= sizes.shortest && equal > best) {
            best = equal;
            found = place;
        }
    }
    return found;
}

TEST(NgramIndex, ContinuesThePlaceWhereMostOfTheLastTokensStand) {
    EXPECT_EQ(ngramDraft({1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, {2, 4}, 3), (Ids{4, 9, 2})) << "three equal ones win";
    EXPECT_EQ(ngramDraft({7, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, {2, 4}, 2), (Ids{5, 1})) << "of equal places the last";
    EXPECT_EQ(ngramDraft({7, 1, 2, 3, 4, 9, 0, 2, 3, 5, 1, 2, 3}, {2, 2}, 2), (Ids{5, 1})) << "two are enough";
    EXPECT_EQ(ngramDraft({1, 2, 3, 1, 2}, {2, 4}, 1), (Ids{3}));
}

TEST(NgramIndex, HasNoDraftWhereTooFewTokensStandEarlier) {
    EXPECT_TRUE(ngramDraft({1, 2, 3, 4, 9, 3}, {2, 4}, 3).empty());
    EXPECT_EQ(ngramDraft({1, 2, 3, 4, 9, 3}, {1, 4}, 2), (Ids{4, 9}));
    EXPECT_TRUE(ngramDraft({1}, {1, 4}, 3).empty());
    EXPECT_TRUE(ngramDraft({}, {1, 4}, 3).empty());
    EXPECT_TRUE(ngramDraft({5, 6, 5, 6}, {2, 4}, 0).empty());
}

TEST(NgramIndex, ARepeatingTextGoesOn) {
    EXPECT_EQ(ngramDraft({8, 8, 8, 8}, {2, 4}, 5), (Ids{8, 8, 8, 8, 8}));
    EXPECT_EQ(ngramDraft({0, 1, 2, 1, 2}, {2, 2}, 5), (Ids{1, 2, 1, 2, 1}));
}

TEST(NgramIndex, FindsWhatASearchFindsWhileATextGrows) {
    std::mt19937 random(7);
    for (const NgramSizes sizes : {NgramSizes{1, 1}, NgramSizes{2, 4}, NgramSizes{3, 9}}) {
        NgramIndex index(sizes);
        Ids text;
        int found = 0;
        for (int step = 0; step < 300; ++step) {
            for (std::uint32_t tokens = 1 + random() % 3; tokens > 0; --tokens) {
                text.push_back(static_cast<std::int32_t>(random() % 5));
            }
            const Ids draft = index.draft(text, 1);
            const std::int64_t place = placeBySearch(text, sizes);
            ASSERT_EQ(draft.empty(), place < 0) << step;
            if (place >= 0) {
                EXPECT_EQ(draft[0], text[static_cast<std::size_t>(place)]) << step;
                ++found;
            }
        }
        EXPECT_GT(found, 100);
    }
}

TEST(NgramIndex, ALongTextWithACommonPairIsCopiedFromFarBack) {
    Ids text;
    for (std::int32_t i = 0; i < 20'000; ++i) {
        text.insert(text.end(), {1, 2, 1000 + i});
    }
    text.insert(text.end(), {1, 2, 1005, 1, 2}); // the four last tokens stand far back only
    EXPECT_EQ(ngramDraft(text, {2, 4}, 3), (Ids{1006, 1, 2}));
}

TEST(NgramIndex, AnotherTextBeginsAnew) {
    NgramIndex index({2, 4});
    EXPECT_EQ(index.draft(Ids{1, 2, 3, 4, 1, 2}, 1), (Ids{3}));
    EXPECT_EQ(index.draft(Ids{5, 6, 7, 5, 6}, 1), (Ids{7}));
}

} // namespace
} // namespace vitrine::engine

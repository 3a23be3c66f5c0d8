// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/ngram_drafter.h"

#include <gtest/gtest.h>
#include <vector>

namespace vitrine::engine {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(NgramDrafter, ContinuesThePlaceWhereMostOfTheLastTokensStand) {
    EXPECT_EQ(ngramDraft(Ids{1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, {2, 4}, 3), (Ids{4, 9, 2})) << "three equal ones win";
    EXPECT_EQ(ngramDraft(Ids{7, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, {2, 4}, 2), (Ids{5, 1})) << "of equal places the last";
    EXPECT_EQ(ngramDraft(Ids{7, 1, 2, 3, 4, 9, 0, 2, 3, 5, 1, 2, 3}, {2, 2}, 2), (Ids{5, 1})) << "two are enough";
    EXPECT_EQ(ngramDraft(Ids{1, 2, 3, 1, 2}, {2, 4}, 1), (Ids{3}));
}

TEST(NgramDrafter, HasNoDraftWhereTooFewTokensStandEarlier) {
    EXPECT_TRUE(ngramDraft(Ids{1, 2, 3, 4, 9, 3}, {2, 4}, 3).empty());
    EXPECT_EQ(ngramDraft(Ids{1, 2, 3, 4, 9, 3}, {1, 4}, 2), (Ids{4, 9}));
    EXPECT_TRUE(ngramDraft(Ids{1}, {1, 4}, 3).empty());
    EXPECT_TRUE(ngramDraft(Ids{}, {1, 4}, 3).empty());
    EXPECT_TRUE(ngramDraft(Ids{5, 6, 5, 6}, {2, 4}, 0).empty());
}

TEST(NgramDrafter, ARepeatingTextGoesOn) {
    EXPECT_EQ(ngramDraft(Ids{8, 8, 8, 8}, {2, 4}, 5), (Ids{8, 8, 8, 8, 8}));
    EXPECT_EQ(ngramDraft(Ids{0, 1, 2, 1, 2}, {2, 2}, 5), (Ids{1, 2, 1, 2, 1}));
}

TEST(NgramDrafter, GivesARequestItsDraft) {
    GenerateRequest asked;
    asked.prompt = {1, 2, 3, 1, 2};
    GenerateResult result;
    ActiveRequest request(asked, 0, result, nullptr, ChatFormatKind::ChatMl);
    NgramDrafter drafter({2, 4});
    const DraftJob job{&request, 2};
    drafter.draft({&job, 1});
    EXPECT_EQ(Ids(request.draft().begin(), request.draft().end()), (Ids{3, 1}));
    EXPECT_EQ(request.history().size(), 5U);
    EXPECT_EQ(request.historyAndDraft().size(), 7U);
    EXPECT_EQ(request.sampling(2).position, 7);
    EXPECT_EQ(request.sampling(2).historyLength, 7) << "penalties count what was drafted before";
    request.dropDraft();
    EXPECT_TRUE(request.draft().empty());
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/ngram_drafter.h"

#include <gtest/gtest.h>
#include <vector>

namespace vitrine::engine {
namespace {

using Ids = std::vector<std::int32_t>;

Ids idsOf(std::span<const std::int32_t> ids) {
    return {ids.begin(), ids.end()};
}

TEST(NgramDrafter, GivesARequestItsDraft) {
    GenerateRequest asked;
    asked.prompt = {1, 2, 3, 1, 2};
    GenerateResult result;
    ActiveRequest request(asked, 0, result, nullptr, AnswerForm::Plain);
    NgramDrafter drafter({2, 4});
    const DraftJob job{&request, 2};
    drafter.draft({&job, 1});
    EXPECT_EQ(idsOf(request.draft()), (Ids{3, 1}));
    EXPECT_EQ(request.history().size(), 5U);
    EXPECT_EQ(request.historyAndDraft().size(), 7U);
    EXPECT_EQ(request.sampling(2).position, 7);
    EXPECT_EQ(request.sampling(2).historyLength, 7) << "penalties count what was drafted before";
    request.fillDraft(3);
    EXPECT_EQ(request.draft().size(), 5U);
    EXPECT_EQ(idsOf(request.guesses()), (Ids{3, 1})) << "what fills a step is no guess";
    request.dropDraft();
    EXPECT_TRUE(request.draft().empty());
    EXPECT_TRUE(request.guesses().empty());
    EXPECT_EQ(request.historyAndDraft().size(), 5U);
}

TEST(NgramDrafter, RequestsHaveTextsOfTheirOwn) {
    NgramDrafter drafter({1, 2});
    GenerateResult result;
    const auto draftOf = [&](std::int32_t number, const Ids& prompt) {
        GenerateRequest asked;
        asked.prompt = prompt;
        ActiveRequest request(asked, number, result, nullptr, AnswerForm::Plain);
        const DraftJob job{&request, 1};
        drafter.draft({&job, 1});
        return idsOf(request.draft());
    };
    EXPECT_EQ(draftOf(0, {1, 2, 1}), (Ids{2}));
    EXPECT_EQ(draftOf(1, {1, 3, 1}), (Ids{3}));
    EXPECT_EQ(draftOf(0, {1, 2, 1, 4, 1}), (Ids{4}));
    drafter.forget(0);
    EXPECT_EQ(draftOf(0, {9, 1, 5, 8, 7, 1}), (Ids{5})) << "another request of this number";
}

} // namespace
} // namespace vitrine::engine

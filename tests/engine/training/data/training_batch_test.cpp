// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/training_batch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/engine/training/shared_prompt_support.h"

namespace vitrine::engine {
namespace {

using Numbers = std::vector<std::int32_t>;

/// A prompt of 4 tokens, and answers of 3 and 2.
TrainingBatch twoAnswers() {
    return test::sharedPrompts({{{1, 2, 3, 4}, {{5, 6, 7}, {8, 9}}}});
}

TrainingBatch plain() {
    TrainingBatch batch;
    batch.addDocument({1, 2, 3});
    batch.addDocument({4, 5});
    return batch;
}

TEST(TrainingBatch, ASharedPromptLiesBeforeItsAnswers) {
    const TrainingBatch batch = twoAnswers();
    EXPECT_EQ(batch.tokens, (Numbers{1, 2, 3, 4, 5, 6, 4, 8}));
    EXPECT_EQ(batch.targets, (Numbers{-1, -1, -1, 5, 6, 7, 8, 9}));
    EXPECT_EQ(batch.lengths, (Numbers{3, 3, 2}));
    EXPECT_EQ(batch.prefixes, (Numbers{-1, 0, 0}));
    EXPECT_TRUE(batch.sharesPrompts());
    EXPECT_EQ(batch.predicted(), 5);
}

TEST(TrainingBatch, AppendingShiftsPrefixes) {
    TrainingBatch batch = twoAnswers();
    batch.append(twoAnswers());
    EXPECT_EQ(batch.prefixes, (Numbers{-1, 0, 0, -1, 3, 3}));
    EXPECT_EQ(batch.count(), 16);
    EXPECT_EQ(batch.predicted(), 10);
}

TEST(TrainingBatch, AppendingFillsInDocumentsWithoutPrefixes) {
    TrainingBatch before = plain();
    before.append(twoAnswers());
    EXPECT_EQ(before.prefixes, (Numbers{-1, -1, -1, 2, 2}));
    TrainingBatch after = twoAnswers();
    after.append(plain());
    EXPECT_EQ(after.prefixes, (Numbers{-1, 0, 0, -1, -1}));
    after.addDocument({7, 8});
    EXPECT_EQ(after.prefixes, (Numbers{-1, 0, 0, -1, -1, -1}));
    TrainingBatch neither = plain();
    neither.append(plain());
    EXPECT_TRUE(neither.prefixes.empty());
    EXPECT_FALSE(neither.sharesPrompts());
}

TEST(TrainingBatch, AppendingFillsInTokensWithoutExperts) {
    constexpr std::uint16_t kNone = GivenExperts::kNone;
    TrainingBatch given;
    given.addDocument({6, 7});
    given.experts = {2, 1, {1, 2, 3, 4}};
    given.addDocument({8});
    EXPECT_EQ(given.experts.ids, (std::vector<std::uint16_t>{1, 2, 3, 4, kNone, kNone}));
    EXPECT_TRUE(given.experts.has(1));
    EXPECT_FALSE(given.experts.has(2));
    TrainingBatch after;
    after.addDocument({4});
    after.append(given);
    EXPECT_EQ(after.experts.ids, (std::vector<std::uint16_t>{kNone, kNone, 1, 2, 3, 4, kNone, kNone}));
    after.append(plain());
    EXPECT_EQ(after.experts.ids.size(), 2 * after.tokens.size());
    TrainingBatch other;
    other.addDocument({5});
    other.experts = {1, 2, {0, 1}};
    EXPECT_THROW(after.append(other), base::Internal);
    TrainingBatch neither = plain();
    neither.append(plain());
    EXPECT_TRUE(neither.experts.empty());
}

TEST(TrainingBatch, APlanPredictsAllButTheLastTokenOfDocumentsAndNoneOfPrefixes) {
    TrainingBatch batch;
    batch.lengths = {10, 5, 1, 7};
    EXPECT_EQ(batch.predicted(), 9 + 4 + 0 + 6);
    batch.prefixes = {-1, 0, 0, -1};
    EXPECT_EQ(batch.predicted(), 4 + 0 + 6);
    batch.prefixes = {-1, -1, -1, -1};
    EXPECT_FALSE(batch.sharesPrompts());
    EXPECT_EQ(batch.predicted(), 9 + 4 + 0 + 6);
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/policy/policy_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <span>

#include "base/error.h"
#include "tests/engine/rl/policy/rollout_testing.h"

namespace vitrine::engine {
namespace {

using testing::ElementsAre;

Rollouts four() {
    const test::TempFolder folder;
    return readRollouts(folder.write("rollouts.safetensors", test::fourRollouts().bytes()), 64);
}

TEST(PolicyBatches, AnswersOfAPromptShareItAndBeginWithItsLastToken) {
    const PolicyBatches out = policyBatches(four(), {});
    ASSERT_EQ(out.batches.size(), 1U);
    const TrainingBatch& batch = out.batches[0];
    EXPECT_THAT(batch.lengths, ElementsAre(1, 2, 1, 2, 3, 1));
    EXPECT_THAT(batch.prefixes, ElementsAre(-1, 0, 0, -1, 3, 3));
    EXPECT_THAT(batch.tokens, ElementsAre(1, 2, 11, 2, 5, 6, 7, 21, 22, 7));
    EXPECT_THAT(batch.targets, ElementsAre(-1, 11, 12, 13, -1, -1, 21, 22, 23, 24));
    EXPECT_THAT(out.places[0], ElementsAre(-1, 2, 3, 14, -1, -1, 9, 10, 11, 21));
    EXPECT_NEAR(out.tokens[0].weights[1], 1.0 / 7, 1e-7);
    EXPECT_NEAR(out.tokens[0].rollout[6], -1.09, 1e-6);
    EXPECT_TRUE(out.tokens[0].old.empty());
}

TEST(PolicyBatches, RowsByThemselvesLackTheirLastToken) {
    PolicyBatchOptions options;
    options.sharePrompts = false;
    options.aggregation = Aggregation::Sequence;
    const PolicyBatches out = policyBatches(four(), options);
    ASSERT_EQ(out.batches.size(), 1U);
    EXPECT_THAT(out.batches[0].lengths, ElementsAre(3, 5, 2, 3));
    EXPECT_TRUE(out.batches[0].prefixes.empty());
    EXPECT_THAT(out.batches[0].targets, ElementsAre(-1, 11, 12, -1, -1, 21, 22, 23, -1, 13, -1, -1, 24));
    EXPECT_NEAR(out.tokens[0].weights[1], 1.0 / 8, 1e-7);
    EXPECT_NEAR(out.tokens[0].weights[5], 1.0 / 12, 1e-7);
}

/// Records of one layer with two experts, so that each names its place.
GivenExperts namedExperts(const Rollouts& rollouts) {
    GivenExperts out{1, 2, {}};
    for (std::size_t place = 0; place < rollouts.ids.size(); ++place) {
        out.ids.push_back(static_cast<std::uint16_t>(place));
        out.ids.push_back(static_cast<std::uint16_t>(place + 5000));
    }
    return out;
}

/// The places of the records of a batch; -1: nothing is given.
std::vector<int> placesOf(const TrainingBatch& batch) {
    std::vector<int> out;
    for (std::int64_t token = 0; token < batch.count(); ++token) {
        const std::span<const std::uint16_t> record = batch.experts.record(token);
        const bool has = batch.experts.has(token);
        EXPECT_EQ(record[1], has ? record[0] + 5000 : int{GivenExperts::kNone});
        out.push_back(has ? record[0] : -1);
    }
    return out;
}

TEST(PolicyBatches, ExpertsOfASharedPromptAreThoseOfTheFirstRowThatHasThem) {
    Rollouts rollouts = four();
    EXPECT_TRUE(policyBatches(rollouts, {}).batches[0].experts.empty());
    rollouts.experts = namedExperts(rollouts);
    const auto forget = [&](std::size_t place) {
        rollouts.experts.ids[2 * place] = rollouts.experts.ids[2 * place + 1] = GivenExperts::kNone;
    };
    EXPECT_THAT(placesOf(policyBatches(rollouts, {}).batches[0]), ElementsAre(0, 1, 2, 13, 6, 7, 8, 9, 10, 20));
    forget(0); // the prompt of row 0, which row 2 has
    forget(1);
    forget(19); // one of row 3's prompt, and its last token, which row 1 has
    forget(20);
    EXPECT_THAT(placesOf(policyBatches(rollouts, {}).batches[0]), ElementsAre(12, 13, 2, 13, 6, 7, 8, 9, 10, 8));
    PolicyBatchOptions oneRow;
    oneRow.rows = 1;
    const PolicyBatches divided = policyBatches(rollouts, oneRow);
    ASSERT_EQ(divided.batches.size(), 4U);
    EXPECT_THAT(placesOf(divided.batches[0]), ElementsAre(12, 13, 2));
    EXPECT_THAT(placesOf(divided.batches[3]), ElementsAre(18, 7, 8));
    forget(12); // nobody has it now
    forget(2);  // of an answer
    EXPECT_THAT(placesOf(policyBatches(rollouts, {}).batches[0]), ElementsAre(-1, 13, -1, 13, 6, 7, 8, 9, 10, 8));
    PolicyBatchOptions alone;
    alone.sharePrompts = false;
    EXPECT_THAT(placesOf(policyBatches(rollouts, alone).batches[0]),
                ElementsAre(-1, -1, -1, 6, 7, 8, 9, 10, -1, 13, 18, -1, -1));
}

TEST(PolicyBatches, RefusesExpertsThatAreNotAsManyAsTheTokensNeed) {
    Rollouts rollouts = four();
    rollouts.experts = namedExperts(rollouts);
    rollouts.experts.ids.pop_back();
    EXPECT_THROW(policyBatches(rollouts, {}), base::BadInput);
    rollouts.experts = namedExperts(rollouts);
    rollouts.experts.k = 0;
    EXPECT_THROW(policyBatches(rollouts, {}), base::BadInput);
}

/// Rows of random prompts and answers, many of the same prompt.
Rollouts randomRollouts(std::mt19937& random) {
    const auto number = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    Rollouts out;
    out.rows = number(1, 40);
    out.width = 30;
    for (std::int64_t row = 0; row < out.rows; ++row) {
        const int prompt = number(1, 3);
        const int length = prompt * 4 + number(1, 18);
        for (int token = 0; token < out.width; ++token) {
            out.ids.push_back(token < prompt * 4 ? prompt : number(10, 50));
        }
        out.promptLengths.push_back(prompt * 4);
        out.lengths.push_back(length);
        out.advantages.push_back(static_cast<float>(number(-3, 3)));
    }
    out.old.resize(out.ids.size());
    for (std::size_t i = 0; i < out.old.size(); ++i) {
        out.old[i] = static_cast<float>(i);
    }
    out.experts = namedExperts(out);
    return out;
}

TEST(PolicyBatches, EveryTokenOfEveryAnswerIsPredictedOnceWhateverTheDivision) {
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
        const Rollouts rollouts = randomRollouts(random);
        PolicyBatchOptions options;
        options.sharePrompts = i % 3 != 0;
        options.rows = i % 2 == 0 ? 0 : 1 + static_cast<std::int64_t>(random() % 8);
        options.tokens = 20 + static_cast<std::int64_t>(random() % 200);
        const PolicyBatches out = policyBatches(rollouts, options);
        std::set<std::int64_t> seen;
        for (std::size_t b = 0; b < out.batches.size(); ++b) {
            const TrainingBatch& batch = out.batches[b];
            ASSERT_EQ(batch.count(), static_cast<std::int64_t>(batch.tokens.size()));
            ASSERT_TRUE(options.rows > 0 || batch.count() <= std::max<std::int64_t>(options.tokens, 30));
            const std::vector<int> read = placesOf(batch);
            for (std::size_t token = 0; token < batch.tokens.size(); ++token) {
                const std::int64_t place = out.places[b][token];
                EXPECT_EQ(rollouts.ids[static_cast<std::size_t>(read[token])], batch.tokens[token]);
                ASSERT_EQ(place >= 0, batch.targets[token] >= 0);
                if (place >= 0) {
                    EXPECT_EQ(read[token], place - 1);
                    EXPECT_TRUE(seen.insert(place).second);
                    EXPECT_EQ(rollouts.ids[static_cast<std::size_t>(place)], batch.targets[token]);
                    EXPECT_EQ(rollouts.ids[static_cast<std::size_t>(place - 1)], batch.tokens[token]);
                    EXPECT_EQ(out.tokens[b].old[token], static_cast<float>(place));
                }
            }
        }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), rollouts.answerTokens());
        std::vector<std::vector<float>> values;
        for (const PolicyTokens& tokens : out.tokens) {
            values.push_back(tokens.old);
        }
        const std::vector<float> back = rolloutValues(rollouts, out, values);
        for (const std::int64_t place : seen) {
            EXPECT_EQ(back[static_cast<std::size_t>(place)], rollouts.old[static_cast<std::size_t>(place)]);
        }
    }
}

} // namespace
} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/policy/policy_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>

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
            for (std::size_t token = 0; token < batch.tokens.size(); ++token) {
                const std::int64_t place = out.places[b][token];
                ASSERT_EQ(place >= 0, batch.targets[token] >= 0);
                if (place >= 0) {
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

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Answers to prompts as batches: with a prompt for each answer, and with one for all answers to it.

#include <cstdint>
#include <random>
#include <vector>

#include "engine/training/data/training_batch.h"

namespace vitrine::engine::test {

struct AnsweredPrompt {
    std::vector<std::int32_t> prompt; ///< at least 2 tokens
    std::vector<std::vector<std::int32_t>> answers;
};

inline void addDocument(TrainingBatch& batch, const std::vector<std::int32_t>& tokens,
                        const std::vector<std::int32_t>& targets, std::int32_t prefix) {
    TrainingBatch document{tokens, targets, {static_cast<std::int32_t>(tokens.size())}, {-1}};
    batch.append(document);
    batch.prefixes.back() = prefix;
}

/// Each answer after a prompt of its own; only the tokens of answers are predicted.
inline TrainingBatch separateRows(const std::vector<AnsweredPrompt>& prompts) {
    TrainingBatch batch;
    for (const AnsweredPrompt& each : prompts) {
        for (const std::vector<std::int32_t>& answer : each.answers) {
            std::vector<std::int32_t> tokens = each.prompt;
            tokens.insert(tokens.end(), answer.begin(), answer.end() - 1);
            std::vector<std::int32_t> targets(each.prompt.size() - 1, -1);
            targets.insert(targets.end(), answer.begin(), answer.end());
            addDocument(batch, tokens, targets, -1);
        }
    }
    batch.prefixes.clear();
    return batch;
}

/// The same with each prompt once.
inline TrainingBatch sharedPrompts(const std::vector<AnsweredPrompt>& prompts) {
    TrainingBatch batch;
    for (const AnsweredPrompt& each : prompts) {
        const auto prefix = static_cast<std::int32_t>(batch.lengths.size());
        const std::vector<std::int32_t> before(each.prompt.begin(), each.prompt.end() - 1);
        addDocument(batch, before, std::vector<std::int32_t>(before.size(), -1), -1);
        for (const std::vector<std::int32_t>& answer : each.answers) {
            std::vector<std::int32_t> tokens = {each.prompt.back()};
            tokens.insert(tokens.end(), answer.begin(), answer.end() - 1);
            addDocument(batch, tokens, answer, prefix);
        }
    }
    return batch;
}

/// One prompt with an answer for each of `answers`, which are the lengths.
inline AnsweredPrompt randomPrompt(std::mt19937& random, std::size_t prompt, const std::vector<std::size_t>& answers) {
    constexpr std::uint32_t kSmallestVocabulary = 320; // of the fixtures
    const auto tokens = [&](std::size_t count) {
        std::vector<std::int32_t> out(count);
        for (std::int32_t& id : out) {
            id = static_cast<std::int32_t>(random() % kSmallestVocabulary);
        }
        return out;
    };
    AnsweredPrompt out{tokens(prompt), {}};
    for (const std::size_t length : answers) {
        out.answers.push_back(tokens(length));
    }
    return out;
}

/// Three prompts over more than two blocks of 128 tokens, with answers longer and shorter than the fixtures' windows.
inline std::vector<AnsweredPrompt> threePrompts() {
    std::mt19937 random(5);
    return {randomPrompt(random, 40, {30, 1, 17, 6}), randomPrompt(random, 2, {25, 9}),
            randomPrompt(random, 135, {12, 50, 3})};
}

} // namespace vitrine::engine::test

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one forward and backward pass trains on.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/training/data/given_experts.h"

namespace vitrine::engine {

/// Documents, one after the other. The positions of each begin at 0, and none sees another, but for shared prompts: a
/// document with a prefix sees all tokens of the prefix document too, and its positions go on from the prefix's length.
/// So the tokens of a prompt with several answers pass the model once. The prompt without its last token is the prefix
/// document; each answer is a document that begins with a copy of the prompt's last token, which predicts its first
/// one.
struct TrainingBatch {
    /// Of a plan on Meta, tokens and targets may be empty: millions of them would take longer than all the rest.
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets; ///< for each token the next one of its document; -1: its loss does not count
    std::vector<std::int32_t> lengths; ///< of the documents; their sum is count()
    /// For each document the index of its prefix document, which comes earlier and has no prefix itself; -1: it has
    /// none. Empty: no document has one.
    std::vector<std::int32_t> prefixes;
    /// Of the tokens, as a sampler chose them; empty: the model's routers choose.
    GivenExperts experts;

    std::int64_t count() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }
    /// Whether a document has a prefix.
    bool sharesPrompts() const {
        return std::ranges::any_of(prefixes, [](std::int32_t prefix) { return prefix >= 0; });
    }
    /// Tokens whose loss counts. Without targets: all but the last one of each document, and none of a prefix document.
    std::int64_t predicted() const {
        if (targets.empty()) {
            return predictedByLengths();
        }
        return std::count_if(targets.begin(), targets.end(), [](std::int32_t target) { return target >= 0; });
    }
    void append(const TrainingBatch& more) {
        appendPrefixes(more);
        experts.append(static_cast<std::int64_t>(tokens.size()), more.experts,
                       static_cast<std::int64_t>(more.tokens.size()));
        tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
        targets.insert(targets.end(), more.targets.begin(), more.targets.end());
        lengths.insert(lengths.end(), more.lengths.begin(), more.lengths.end());
    }
    /// Adds one document. Every token but the last one predicts the next.
    void addDocument(const std::vector<std::int32_t>& document) {
        tokens.insert(tokens.end(), document.begin(), document.end());
        experts.addNone(static_cast<std::int64_t>(document.size()));
        if (!document.empty()) {
            targets.insert(targets.end(), document.begin() + 1, document.end());
            targets.push_back(-1);
            lengths.push_back(static_cast<std::int32_t>(document.size()));
            if (!prefixes.empty()) {
                prefixes.push_back(-1);
            }
        }
    }

private:
    std::int64_t predictedByLengths() const {
        std::vector<std::int32_t> counted = lengths;
        for (const std::int32_t prefix : prefixes) {
            if (prefix >= 0) {
                counted[static_cast<std::size_t>(prefix)] = 1;
            }
        }
        return std::accumulate(counted.begin(), counted.end(), -static_cast<std::int64_t>(counted.size()));
    }
    /// Before the lengths of `more` are here.
    void appendPrefixes(const TrainingBatch& more) {
        if (prefixes.empty() && more.prefixes.empty()) {
            return;
        }
        prefixes.resize(lengths.size(), -1);
        for (const std::int32_t prefix : more.prefixes) {
            prefixes.push_back(prefix < 0 ? -1 : prefix + static_cast<std::int32_t>(lengths.size()));
        }
        prefixes.resize(lengths.size() + more.lengths.size(), -1);
    }
};

} // namespace vitrine::engine

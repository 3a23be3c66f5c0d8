// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one forward and backward pass trains on.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace vitrine::engine {

/// Documents, one after the other. The positions of each begin at 0, and none sees another.
struct TrainingBatch {
    /// Of a plan on Meta, tokens and targets may be empty: millions of them would take longer than all the rest.
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets; ///< for each token the next one of its document; -1: its loss does not count
    std::vector<std::int32_t> lengths; ///< of the documents; their sum is count()

    std::int64_t count() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }
    /// Tokens whose loss counts.
    std::int64_t predicted() const {
        if (targets.empty()) {
            return count() - static_cast<std::int64_t>(lengths.size()); // all but the last of each document
        }
        return std::count_if(targets.begin(), targets.end(), [](std::int32_t target) { return target >= 0; });
    }
    void append(const TrainingBatch& more) {
        tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
        targets.insert(targets.end(), more.targets.begin(), more.targets.end());
        lengths.insert(lengths.end(), more.lengths.begin(), more.lengths.end());
    }
    /// Adds one document. Every token but the last one predicts the next.
    void addDocument(const std::vector<std::int32_t>& document) {
        tokens.insert(tokens.end(), document.begin(), document.end());
        if (!document.empty()) {
            targets.insert(targets.end(), document.begin() + 1, document.end());
            targets.push_back(-1);
            lengths.push_back(static_cast<std::int32_t>(document.size()));
        }
    }
};

} // namespace vitrine::engine

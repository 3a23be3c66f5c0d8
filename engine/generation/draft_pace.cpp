// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/draft_pace.h"

#include <algorithm>

#include "engine/generation/batch_pool.h"

namespace vitrine::engine {
namespace {

constexpr double kMemory = 0.9; ///< weight of what was known when another draft was checked
constexpr std::int64_t kFirstRest = 4;
constexpr std::int64_t kLongestRest = 64; ///< a useless draft in so many steps costs nothing that counts

} // namespace

std::int64_t draftLength(std::int64_t most, std::int64_t limit) {
    std::int64_t length = std::min(most, limit);
    while (length > 0 && bucketRows(static_cast<std::int32_t>(length), static_cast<std::int32_t>(limit)) != length) {
        --length;
    }
    return std::max<std::int64_t>(length, 0);
}

std::int64_t DraftPace::next(std::int64_t most, std::int64_t limit, const CheckCost& cost) {
    if (resting_ > 0) {
        --resting_;
        return 0;
    }
    if (wrong_ <= 0) {
        return draftLength(most, limit);
    }
    std::int64_t best = 0;
    double bestRate = 1; // tokens in the time of a plain step
    double tokens = 1;
    double all = 1;
    for (std::int64_t length = 1; length <= std::min(most, limit); ++length) {
        all *= acceptance();
        tokens += all;
        const double rate = tokens / (1 + cost.step + cost.token * static_cast<double>(length));
        if (rate > bestRate && draftLength(length, limit) == length) {
            best = length;
            bestRate = rate;
        }
    }
    if (best == 0 && most > 0 && rest_ > 0) {
        // The rest is over: one token asks whether the text has changed.
        return 1;
    }
    if (best == 0 && most > 0) {
        rest_ = kFirstRest;
        resting_ = rest_ - 1;
    }
    return best;
}

void DraftPace::noteChecked(std::int64_t drafted, std::int64_t kept) {
    right_ = kMemory * right_ + static_cast<double>(kept);
    wrong_ = kMemory * wrong_ + (kept < drafted ? 1 : 0);
    if (kept > 0) {
        rest_ = 0;
    } else if (rest_ > 0) {
        rest_ = std::min(2 * rest_, kLongestRest);
        resting_ = rest_;
    }
}

} // namespace vitrine::engine

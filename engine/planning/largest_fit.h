// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The search of planning: the largest number that fits a budget, in few tries.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace vitrine::engine {

/// The search for the largest n in [1, limit] that fits a budget, for callers that make the tries themselves. What once
/// did not fit must never fit again as n grows. One thread.
class FitSearch {
public:
    /// `first` is tried first.
    FitSearch(std::int64_t first, std::int64_t limit) : bad_(limit + 1), limit_(limit), next_(first) {}

    /// The n to try; nothing once the search is done.
    std::optional<std::int64_t> next() const { return bad_ - good_ > 1 ? std::optional(next_) : std::nullopt; }
    /// What a try of n told. `bytes`: what it reserves, or would, where that is known.
    void tried(std::int64_t n, bool fits, std::optional<std::uint64_t> bytes, std::uint64_t budget);
    /// The largest n that fitted; 0: none did.
    std::int64_t found() const { return good_; }

private:
    struct Point {
        std::int64_t n = 0;
        double bytes = 0;
    };
    std::int64_t good_ = 0, bad_, limit_, next_;
    std::vector<Point> points_; ///< the last two
    int tries_ = 0;
};

/// What a try of size n reserves, in bytes; nothing where it does not fit.
using FitProbe = std::function<std::optional<std::uint64_t>(std::int64_t n)>;

/// The largest n in [1, limit] that fits; 0: none does. `first` is tried first. What once did not fit must never fit
/// again as n grows. `budget` is called after a try and gives the bytes that may be reserved. Throws what `reserves`
/// throws.
std::int64_t largestFit(std::int64_t first, std::int64_t limit, const FitProbe& reserves,
                        const std::function<std::uint64_t()>& budget);

} // namespace vitrine::engine

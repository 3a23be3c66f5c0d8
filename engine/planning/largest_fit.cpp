// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/planning/largest_fit.h"

#include <algorithm>

namespace vitrine::engine {

void FitSearch::tried(std::int64_t n, bool fits, std::optional<std::uint64_t> bytes, std::uint64_t budget) {
    // Memory is nearly linear in n, so the next try is where the line through the last two reaches the budget. Every
    // third try halves the interval.
    if (fits) {
        good_ = std::max(good_, n);
    } else {
        bad_ = std::min(bad_, n);
    }
    if (bytes) {
        if (points_.size() == 2) {
            points_.erase(points_.begin());
        }
        points_.push_back({n, static_cast<double>(*bytes)});
    }
    ++tries_;
    next_ = bad_ > limit_ ? std::min(good_ * 2, limit_) : good_ + (bad_ - good_) / 2;
    if (tries_ % 3 != 0 && points_.size() == 2 && points_[0].n != points_[1].n) {
        const Point& a = points_[0];
        const Point& b = points_[1];
        const double slope = (b.bytes - a.bytes) / static_cast<double>(b.n - a.n);
        const double room = static_cast<double>(budget) - b.bytes;
        next_ = slope > 0 ? b.n + static_cast<std::int64_t>(std::clamp(room / slope, -1e9, 1e9)) : next_;
    }
    next_ = std::clamp(next_, good_ + 1, std::max(bad_ - 1, good_ + 1));
}

std::int64_t largestFit(std::int64_t first, std::int64_t limit, const FitProbe& reserves,
                        const std::function<std::uint64_t()>& budget) {
    FitSearch search(first, limit);
    while (const auto n = search.next()) {
        const auto bytes = reserves(*n);
        search.tried(*n, bytes.has_value(), bytes, budget());
    }
    return search.found();
}

} // namespace vitrine::engine

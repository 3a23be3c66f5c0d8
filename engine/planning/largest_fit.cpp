// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/planning/largest_fit.h"

#include <algorithm>
#include <vector>

namespace vitrine::engine {

std::int64_t largestFit(std::int64_t first, std::int64_t limit, const FitProbe& reserves,
                        const std::function<std::uint64_t()>& budget) {
    // Memory is nearly linear in n, so the next try is where the line through the last two reaches the budget. Every
    // third try halves the interval.
    struct Point {
        std::int64_t n = 0;
        double bytes = 0;
    };
    std::vector<Point> points;
    std::int64_t good = 0;
    std::int64_t bad = limit + 1;
    std::int64_t next = first;
    for (int tries = 1; bad - good > 1; ++tries) {
        const auto bytes = reserves(next);
        if (bytes) {
            good = next;
            points.push_back({next, static_cast<double>(*bytes)});
        } else {
            bad = next;
        }
        next = bad > limit ? std::min(good * 2, limit) : good + (bad - good) / 2;
        if (tries % 3 != 0 && points.size() >= 2) {
            const Point& a = points[points.size() - 2];
            const Point& b = points.back();
            const double slope = (b.bytes - a.bytes) / static_cast<double>(b.n - a.n);
            const double room = static_cast<double>(budget()) - b.bytes;
            next = slope > 0 ? b.n + static_cast<std::int64_t>(std::min(room / slope, 1e9)) : next;
        }
        next = std::clamp(next, good + 1, std::max(bad - 1, good + 1));
    }
    return good;
}

} // namespace vitrine::engine

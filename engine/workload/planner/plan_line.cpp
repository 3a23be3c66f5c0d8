// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/planner/plan_line.h"

#include <algorithm>
#include <optional>

#include "engine/planning/largest_fit.h"
#include "engine/workload/planner/plan_sets.h"

namespace vitrine::engine {

namespace {

constexpr std::int64_t kLongestUnits = (std::int64_t{1} << 21) / kContextUnit;
constexpr std::int64_t kFirstUnits = 64; ///< where no context is given
/// A try is at most so many times as long as what fits: below its knee a line says too little of what lies above, and
/// the longest plans take longest.
constexpr std::int64_t kLargestStride = 8;

void insert(PlanLine& line, const PlanPoint& point) {
    const auto at = std::ranges::lower_bound(line.points, point.tokens, {}, &PlanPoint::tokens);
    if (at == line.points.end() || at->tokens != point.tokens) {
        line.points.insert(at, point);
    }
}

} // namespace

PlanSlope PlanLine::slope() const {
    PlanSlope out;
    if (points.size() < 2) {
        return out;
    }
    // Points of the search lie close together at its end, where rounding would show: one before half the way is far
    // enough.
    const PlanPoint& last = points.back();
    const PlanPoint* first = &points[points.size() - 2];
    for (const PlanPoint& point : points) {
        if (point.tokens * 2 <= last.tokens) {
            first = &point;
        }
    }
    const auto rise = [&](std::uint64_t from, std::uint64_t to) {
        return (static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(last.tokens - first->tokens);
    };
    out.reserved = rise(first->reserved, last.reserved);
    for (std::size_t i = 0; i < out.byCategory.size(); ++i) {
        out.byCategory[i] = rise(first->byCategory[i], last.byCategory[i]);
    }
    return out;
}

double PlanLine::at(double tokens) const {
    if (points.empty()) {
        return 0;
    }
    const auto after = std::ranges::find_if(
        points, [&](const PlanPoint& point) { return static_cast<double>(point.tokens) >= tokens; });
    if (after == points.end()) {
        return static_cast<double>(points.back().reserved) +
               slope().reserved * (tokens - static_cast<double>(points.back().tokens));
    }
    if (after == points.begin()) {
        return static_cast<double>(points.front().reserved);
    }
    const PlanPoint &a = *(after - 1), &b = *after;
    const double share = (tokens - static_cast<double>(a.tokens)) / static_cast<double>(b.tokens - a.tokens);
    return static_cast<double>(a.reserved) +
           share * (static_cast<double>(b.reserved) - static_cast<double>(a.reserved));
}

void addPoint(PlanLine& line, PlanPricer& pricer, const Experiment& planned, std::int64_t tokens,
              const base::StopToken& stop) {
    const PlanPrice& price = pricer.price(withContext(planned, tokens), stop);
    if (price.known()) {
        insert(line, {tokens, price.reserved, price.byCategory});
    }
}

PlanLine planLine(PlanPricer& pricer, const Experiment& planned, const base::StopToken& stop) {
    PlanLine line;
    const auto priceOf = [&](std::int64_t units) -> const PlanPrice& {
        return pricer.price(withContext(planned, units * kContextUnit), stop);
    };
    const PlanPrice first = priceOf(1);
    line.error = first.error;
    if (!first.known()) {
        return line;
    }
    insert(line, {kContextUnit, first.reserved, first.byCategory});
    const std::int64_t limit =
        first.contextLimit > 0 ? std::max<std::int64_t>(first.contextLimit / kContextUnit, 1) : kLongestUnits;
    const std::int64_t asked = contextOf(planned).value_or(kFirstUnits * kContextUnit) / kContextUnit;
    FitSearch search(std::clamp<std::int64_t>(asked, 1, limit), limit);
    std::optional<std::int64_t> units = search.next(); // before the try of 1, which would choose another
    search.tried(1, first.fits, first.reserved, first.budget);
    while (first.fits && units && search.next()) {
        const PlanPrice& price = priceOf(*units);
        if (!price.known()) {
            line.error = price.error;
            break;
        }
        insert(line, {*units * kContextUnit, price.reserved, price.byCategory});
        search.tried(*units, price.fits, price.reserved, price.budget);
        units = search.next();
        if (units) {
            units = std::min(*units, search.found() * kLargestStride);
        }
    }
    line.longest = search.found() * kContextUnit;
    line.open = search.found() == limit && first.contextLimit == 0;
    return line;
}

} // namespace vitrine::engine

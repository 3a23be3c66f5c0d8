// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Peak memory over context: where the line of an experiment meets its budget, and points to draw it by.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/workload/planner/plan_price.h"

namespace vitrine::engine {

/// Limits are multiples of this many tokens.
inline constexpr std::int64_t kContextUnit = 128;

struct PlanPoint {
    std::int64_t tokens = 0;
    std::uint64_t reserved = 0;
    base::CategoryBytes byCategory{};
};

struct PlanSlope {
    double reserved = 0;
    std::array<double, base::kCategoryCount> byCategory{};
};

struct PlanLine {
    std::vector<PlanPoint> points; ///< by tokens, each of them priced
    std::int64_t longest = 0;      ///< that fits, a multiple of kContextUnit; 0: none does
    bool open = false;             ///< the search ended, not memory and not the model: longer ones may fit
    std::string error;             ///< why there is no line

    /// Bytes a token behind the line's last knee; all 0: not known.
    PlanSlope slope() const;
    /// Reserved bytes at a context, between and beyond the points. 0: not known.
    double at(double tokens) const;
};

/// Searches the longest context of a planned experiment with the prices that it takes; its own context is tried first.
/// Throws Cancelled.
PlanLine planLine(PlanPricer& pricer, const Experiment& planned, const base::StopToken& stop);
/// Adds a point to the line.
void addPoint(PlanLine& line, PlanPricer& pricer, const Experiment& planned, std::int64_t tokens,
              const base::StopToken& stop);

} // namespace vitrine::engine

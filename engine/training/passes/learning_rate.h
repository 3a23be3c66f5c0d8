// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Learning rates over the steps of a run, as the schedules of transformers have them.

#include <cstdint>
#include <optional>
#include <string_view>

namespace vitrine::engine {

enum class RateSchedule : std::uint8_t { Constant, Linear, Cosine };

/// "constant", "linear", "cosine".
std::string_view rateScheduleName(RateSchedule schedule);
std::optional<RateSchedule> rateScheduleByName(std::string_view name);

struct LearningRate {
    RateSchedule schedule = RateSchedule::Constant;
    double peak = 0;              ///< after the warm-up
    std::int64_t warmupSteps = 0; ///< the rate grows from 0 in these steps
    std::int64_t totalSteps = 0;  ///< linear and cosine reach their end here
    double minimumShare = 0;      ///< of the peak, from 0 to 1: where linear and cosine end

    /// The rate of a step, counted from 0.
    double at(std::int64_t step) const;
};

} // namespace vitrine::engine

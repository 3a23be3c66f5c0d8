// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/learning_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace vitrine::engine {

namespace {

constexpr std::array<std::pair<RateSchedule, std::string_view>, 3> kScheduleNames = {
    {{RateSchedule::Constant, "constant"}, {RateSchedule::Linear, "linear"}, {RateSchedule::Cosine, "cosine"}}};

double shareOf(RateSchedule schedule, double progress) {
    switch (schedule) {
    case RateSchedule::Constant:
        return 1;
    case RateSchedule::Linear:
        return 1 - progress;
    case RateSchedule::Cosine:
        return 0.5 * (1 + std::cos(std::numbers::pi * progress));
    }
    return 1;
}

} // namespace

std::string_view rateScheduleName(RateSchedule schedule) {
    return std::find_if(kScheduleNames.begin(), kScheduleNames.end(),
                        [&](const auto& row) { return row.first == schedule; })
        ->second;
}

std::optional<RateSchedule> rateScheduleByName(std::string_view name) {
    const auto* const found =
        std::find_if(kScheduleNames.begin(), kScheduleNames.end(), [&](const auto& row) { return row.second == name; });
    return found == kScheduleNames.end() ? std::nullopt : std::optional(found->first);
}

double LearningRate::at(std::int64_t step) const {
    if (step < warmupSteps) {
        return peak * static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, warmupSteps));
    }
    if (schedule == RateSchedule::Constant) {
        return peak;
    }
    const auto decay = static_cast<double>(std::max<std::int64_t>(1, totalSteps - warmupSteps));
    const double progress = std::min(1.0, static_cast<double>(step - warmupSteps) / decay);
    return peak * (minimumShare + (1 - minimumShare) * shareOf(schedule, progress));
}

} // namespace vitrine::engine

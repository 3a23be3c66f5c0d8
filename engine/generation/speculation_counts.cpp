// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/speculation_counts.h"

#include <algorithm>

namespace vitrine::engine {

namespace {

constexpr std::ptrdiff_t kFewSteps = 8;
constexpr std::int64_t kStepsToCompare = 3; ///< the first waits for kernels, the second may capture a graph

} // namespace

void UsualTime::add(double seconds) {
    times_[added_++ % times_.size()] = static_cast<float>(seconds);
}

std::optional<double> UsualTime::seconds() const {
    if (added_ == 0) {
        return std::nullopt;
    }
    auto sorted = times_;
    const auto count = static_cast<std::ptrdiff_t>(std::min(added_, sorted.size()));
    const auto middle = sorted.begin() + (count < kFewSteps ? 0 : (count - 1) / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + count);
    return *middle;
}

double SpeculationCounts::acceptanceRate() const {
    return drafted > 0 ? static_cast<double>(accepted) / static_cast<double>(drafted) : 0;
}

double SpeculationCounts::tokensPerStep() const {
    return rows > 0 ? static_cast<double>(rows + accepted) / static_cast<double>(rows) : 1;
}

double SpeculationCounts::savedSteps() const {
    return rows > 0 ? static_cast<double>(accepted * (plainSteps + checkSteps)) / static_cast<double>(rows) : 0;
}

std::optional<double> SpeculationCounts::gain() const {
    const std::optional<double> plain = plainTime.seconds();
    if (!plain || plainSteps < kStepsToCompare) {
        return std::nullopt;
    }
    const double spent = static_cast<double>(plainSteps) * *plain +
                         static_cast<double>(checkSteps) * checkTime.seconds().value_or(0) + draftSeconds;
    const double alone = *plain * (static_cast<double>(plainSteps + checkSteps) + savedSteps());
    return spent > 0 ? std::optional(alone / spent) : std::nullopt;
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/acceptance.h"

#include <algorithm>
#include <cmath>

namespace vitrine::engine {

std::int64_t acceptedTokens(std::span<const std::int32_t> draft, std::span<const std::int32_t> chosen) {
    return std::ranges::mismatch(draft, chosen).in1 - draft.begin();
}

std::int64_t assumedAcceptedTokens(double rate, std::int64_t drafted, std::int64_t index) {
    double mean = 0;
    double all = 1;
    for (std::int64_t i = 0; i < drafted; ++i) {
        all *= rate;
        mean += all;
    }
    const auto until = [mean](std::int64_t steps) { return std::floor(mean * static_cast<double>(steps)); };
    return std::clamp(static_cast<std::int64_t>(until(index + 1) - until(index)), std::int64_t{0}, drafted);
}

} // namespace vitrine::engine

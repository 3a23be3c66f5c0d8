// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Steps of a change of log-probability, which tints follow.

#include <cmath>

namespace vitrine::ui {

inline constexpr double kChangeSteps[] = {0.05, 0.1, 0.2, 0.4}; ///< nats
inline constexpr double kUnderlinedChange = 0.1;                ///< nats, from here on
inline constexpr double kLargeChange = 0.2;                     ///< nats; what Shift jumps to is beyond it

/// 0 below the first step, 4 or -4 from the last one on; NaN is 0.
inline int changeStep(double change) {
    int step = 0;
    for (const double edge : kChangeSteps) {
        step += std::abs(change) >= edge ? 1 : 0;
    }
    return change < 0 ? -step : step;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a plan says over a stack of memory: its line with the band of its error, an outline of what a change would
// make of it, and a budget that lies far above, behind a break of the axis.

#include <optional>

#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

struct StackForecast {
    std::uint64_t planned = 0;            ///< bytes; 0: no line
    double share = 0;                     ///< of them, on either side
    QString label;                        ///< "plan 20.30 ±2.1 %"
    std::optional<std::uint64_t> outline; ///< with the change
    QString outlineLabel;
    std::optional<base::TimeNs> end; ///< where the newest value stands
    std::uint64_t value = 0;
    QString endText;

    std::uint64_t highest() const; ///< bytes that the scale must have
};

/// Room above the stack for the budget and the break.
inline constexpr int kBreakHeight = 26;

/// Over a stack that is painted in `frame` with `scale`.
void paintForecast(QPainter& painter, const StackForecast& forecast, const AxisMap& axis, const PlotFrame& frame,
                   const ByteScale& scale, const ThemeTokens& theme);

/// The budget's line, what is spare of it (bytes over it are negative), and two zigzags for what is not drawn.
void paintBudgetBreak(QPainter& painter, const PlotFrame& frame, std::uint64_t budget,
                      std::optional<std::int64_t> spare, const ThemeTokens& theme);

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Stacked areas: one column of device pixels for each column of the model.

#include <optional>
#include <set>

#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

struct StackInput {
    StackModelPtr model;
    AxisMap axis;
    std::uint64_t top = 0;               ///< 0: the model's largest total
    std::set<int> only;                  ///< layers to show; empty: all
    std::optional<std::uint64_t> budget; ///< dashed line
    std::vector<base::OutOfMemoryEvent> failures;
    std::vector<base::TimeNs> guides;                                     ///< vertical lines: borders of phases
    std::optional<profiler::MemoryColumn> peak;                           ///< marked when it lies in the range
    QString peakName;                                                     ///< what it is called; empty: "Peak"
    std::optional<std::vector<std::pair<base::TimeNs, double>>> reserved; ///< a line of what the allocator reserved
    std::vector<std::optional<std::uint64_t>> plan; ///< predicted totals, one for each column; empty: not shown
    std::uint64_t planPeak = 0;
    bool labels = true;
    bool frame = true; ///< grid and scale; false for minimaps
};

/// Rectangles of the layers, for tests and hit tests: bottom and top of a layer in a column, in bytes.
struct StackSpan {
    std::uint64_t bottom = 0, top = 0;
};
std::vector<StackSpan> stackSpans(const StackModel& model, std::size_t column, const std::set<int>& only);

ByteScale stackScale(const StackInput& input, double height);
QImage paintStack(const StackInput& input, const PlotFrame& frame, const ThemeTokens& theme);

/// Columns alone at a painter, for minimaps: the plot rectangle in logical pixels.
void paintStackColumns(QPainter& painter, const StackInput& input, const QRectF& plot, const ByteScale& scale,
                       double dpr, const ThemeTokens& theme);

} // namespace vitrine::ui

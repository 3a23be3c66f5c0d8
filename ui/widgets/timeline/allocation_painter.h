// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Allocations as shapes: lifetime across, bytes up, at their address or in stacking order.

#include <memory>
#include <optional>
#include <set>

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

struct AllocationInput {
    TimelinePtr timeline;
    AxisMap axis;
    bool byAddress = true;
    std::optional<std::uint64_t> budget;
    std::set<int> categories; ///< empty: all
    std::optional<std::uint32_t> onlyName;
    std::vector<std::size_t> found; ///< rows to frame, by birth
};

struct AllocationHit {
    QRectF rect; ///< in the lane's coordinates without the header
    std::size_t row = 0;
    std::uint32_t count = 1; ///< > 1: too small to draw alone
};

struct AllocationPicture {
    QImage image;
    std::vector<AllocationHit> hits; ///< in drawing order
    std::uint64_t shapes = 0;        ///< drawn on their own
    std::uint64_t small = 0;         ///< inside hatches
};

ByteScale allocationScale(const AllocationInput& input, double height);
/// Any thread.
AllocationPicture paintAllocations(const AllocationInput& input, const PlotFrame& frame, const ThemeTokens& theme);

} // namespace vitrine::ui

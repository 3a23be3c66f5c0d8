// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A track of a trace as rows of boxes. What is too small to draw alone becomes a zig-zag with its count. The work grows
// with the pixels and the logarithm of the spans, not with the spans: every row is searched from pixel to pixel.

#include "ui/models/kernels/kernel_trace.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

inline constexpr int kTraceRowHeight = 16;

struct TraceInput {
    KernelTracePtr trace;
    std::size_t track = 0;
    TimelinePtr timeline; ///< of the names
    AxisMap axis;
};

/// A box or a zig-zag that was drawn.
struct TraceHit {
    QRectF rect;      ///< in the lane's coordinates without the header
    TracePlace place; ///< of its first span
    std::size_t count = 1;
};

struct TracePicture {
    QImage image;
    std::vector<TraceHit> hits; ///< row by row, by begin
    std::uint64_t drawn = 0;    ///< spans drawn on their own
    std::uint64_t small = 0;    ///< spans inside zig-zags
};

TracePicture paintTrace(const TraceInput& input, const PlotFrame& frame, const ThemeTokens& theme);

/// Where a span lies, clipped to nothing; in the lane's coordinates without the header.
QRectF traceRect(const TraceInput& input, TracePlace place, double gutter);

} // namespace vitrine::ui

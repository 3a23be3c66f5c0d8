// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Series over one scale, as a lane or a part of one shows them: lines, bands, rings, dots and squares. Each column of
// pixels shows the span of the values in it, so that no peak is lost. Series of a run have its letter at their end.

#include <QPainter>
#include <functional>
#include <optional>
#include <vector>

#include "ui/models/common/plot_series.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

/// One series, the first one of a plot at the bottom.
struct LaneSeries {
    enum class Mark : std::uint8_t { Thin, Bold, Dashed, Ring, Dot, Square, Band };
    QString name;
    /// Of a band, low and high are its edges.
    std::function<std::vector<PlotSample>(const AxisMap&, int columns)> samples;
    std::function<QColor(const ThemeTokens&)> color;
    Mark mark = Mark::Thin;
    QChar letter{}; ///< of its run, at its end; null: none
    /// Its value at a place, where a lettered series has a mark under the cursor: a dot for A, a square for others.
    std::function<std::optional<double>(base::TimeNs)> at{};
};

struct SeriesPlot {
    std::vector<LaneSeries> series;
    PlotScale scale;
};

/// Where a value lies; values beyond the scale lie at its ends.
double seriesY(const PlotScale& scale, double value, const QRectF& plot);
/// Grid lines, and their numbers in the gutter.
void paintSeriesScale(QPainter& painter, const PlotScale& scale, const QRectF& plot, double gutter,
                      const ThemeTokens& theme);
/// Series over the scale. `left`: nothing left of it is seen.
void paintSeries(QPainter& painter, const SeriesPlot& plot, const AxisMap& axis, const QRectF& rect, double dpr,
                 double left, const ThemeTokens& theme);
/// Values at a place of the axis.
void paintSeriesMarks(QPainter& painter, const SeriesPlot& plot, const AxisMap& axis, const QRectF& rect,
                      base::TimeNs place, const ThemeTokens& theme);

} // namespace vitrine::ui

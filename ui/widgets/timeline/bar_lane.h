// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A stacked bar at each place of the axis, with the total of another run as a dashed line over it. Where bars would be
// narrower than 3 px there is one for each column of pixels, the mean of those that share it. The parts are named
// beside the last bar, or at the upper left where it has no room beside it.

#include <functional>
#include <optional>
#include <vector>

#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/series_plot.h"

namespace vitrine::ui {

/// The first one is at the bottom. All parts have values at the same places.
struct BarPart {
    QString name, value; ///< of the part, and what it is at the cursor
    base::MemoryCategory category = base::MemoryCategory::Other;
    std::function<std::vector<PlotSample>(const AxisMap&, int columns)> samples;
};

class BarLane final : public Lane {
    Q_OBJECT

public:
    BarLane(const QString& title, const QString& note, TimeCursor* time, QWidget* parent);

    void setBars(std::vector<BarPart> parts, const PlotScale& scale, std::optional<LaneSeries> line);
    /// Values beside the names, in the order of the parts, and words below them.
    void setValues(const QStringList& values, const QString& whose, const QString& rest);
    void setSpoken(std::function<QString()> words) { spoken_ = std::move(words); }
    QString spoken() const override { return spoken_ ? spoken_() : facts(); }
    const std::vector<BarPart>& parts() const { return parts_; }
    const PlotScale& scale() const { return plot_.scale; }

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;

private:
    void paintBars(QPainter& painter, const PlotFrame& frame) const;
    /// The last bar in sight: its place and what its parts are.
    struct LastBar {
        double x = -1; ///< negative: there is none
        std::vector<double> values;
    };
    void paintNames(QPainter& painter, const QRectF& plot, const LastBar& last) const;
    void paintBeside(QPainter& painter, const QRectF& plot, const LastBar& last) const;

    std::vector<BarPart> parts_;
    SeriesPlot plot_; ///< the scale and the line
    QString whose_, rest_;
    std::function<QString()> spoken_;
};

} // namespace vitrine::ui

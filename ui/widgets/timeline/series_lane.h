// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A lane of series over a scale that need not begin at 0, or of several plots below each other: a limit, the newest
// value beside the end, values under the cursor.

#include <functional>
#include <optional>
#include <vector>

#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/series_plot.h"

namespace vitrine::ui {

class SeriesLane final : public Lane {
    Q_OBJECT

public:
    /// `note` stands in text3 after the title: what the scale counts.
    SeriesLane(const QString& title, const QString& note, TimeCursor* time, QWidget* parent);

    void setNote(const QString& note);
    /// `same`: up to this place the series are what they were, so that only what follows is painted anew.
    void setSeries(std::vector<LaneSeries> series, const PlotScale& scale, std::optional<base::TimeNs> same = {});
    /// Several plots below each other, of the same height. Limit and end belong to the first one.
    void setPlots(std::vector<SeriesPlot> plots);
    /// A dashed line with its words; nothing: none. `reference`: what others have, not what must not be passed.
    void setLimit(std::optional<double> value, const QString& text = {}, bool reference = false);
    /// The newest value in words beside the line of "now".
    void setEnd(std::optional<base::TimeNs> place, const QString& text = {}, bool accent = false);
    /// Dotted lines through the plot.
    void setRules(std::vector<base::TimeNs> places);
    const PlotScale& scale() const { return plots_.front().scale; } ///< of the first plot
    const std::vector<SeriesPlot>& plots() const { return plots_; }
    double yOf(double value, const QRectF& plot) const { return seriesY(scale(), value, plot); }
    /// What a screen reader says at the cursor; empty: the facts.
    void setSpoken(std::function<QString()> words) { spoken_ = std::move(words); }
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;
    bool paintFrom(QImage& picture, const PlotFrame& frame, double x) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;

private:
    /// Of one of the plots in that of the lane.
    QRectF rectOf(std::size_t index, const QRectF& all) const;
    void paintAll(QPainter& painter, const PlotFrame& frame, double left) const;
    void paintLimit(QPainter& painter, const PlotFrame& frame) const;
    void paintEnd(QPainter& painter, const PlotFrame& frame) const;

    TextLabel* note_;
    std::vector<SeriesPlot> plots_{1};
    std::optional<double> limit_;
    bool limitIsReference_ = false;
    QString limitText_, endText_;
    std::optional<base::TimeNs> end_;
    bool endAccent_ = false;
    std::vector<base::TimeNs> rules_;
    std::function<QString()> spoken_;
};

/// A dotted line2 rule through a plot.
void paintRule(QPainter& painter, double x, const QRectF& plot, const ThemeTokens& theme);

} // namespace vitrine::ui

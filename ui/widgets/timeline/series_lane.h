// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A lane of lines over a scale that need not begin at 0: thin, bold, dashed and ring series, a limit, the newest value
// beside the end. Each column of pixels shows the span of the values in it, so that no peak is lost.

#include <functional>
#include <optional>
#include <vector>

#include "ui/models/common/plot_series.h"
#include "ui/widgets/timeline/lane.h"

namespace vitrine::ui {

/// One series of a lane, the first one at the bottom.
struct LaneSeries {
    enum class Mark : std::uint8_t { Thin, Bold, Dashed, Ring };
    QString name;
    std::function<std::vector<PlotSample>(const AxisMap&, int columns)> samples;
    std::function<QColor(const ThemeTokens&)> color;
    Mark mark = Mark::Thin;
};

class SeriesLane final : public Lane {
    Q_OBJECT

public:
    /// `note` stands in text3 after the title: what the scale counts.
    SeriesLane(const QString& title, const QString& note, TimeCursor* time, QWidget* parent);

    void setNote(const QString& note);
    /// `same`: up to this place the series are what they were, so that only what follows is painted anew.
    void setSeries(std::vector<LaneSeries> series, const PlotScale& scale, std::optional<base::TimeNs> same = {});
    /// A dashed line with its words; nothing: none.
    void setLimit(std::optional<double> value, const QString& text = {});
    /// The newest value in words beside the line of "now".
    void setEnd(std::optional<base::TimeNs> place, const QString& text = {}, bool accent = false);
    /// Dotted lines through the plot.
    void setRules(std::vector<base::TimeNs> places);
    const PlotScale& scale() const { return scale_; }
    double yOf(double value, const QRectF& plot) const;
    /// What a screen reader says at the cursor; empty: the facts.
    void setSpoken(std::function<QString()> words) { spoken_ = std::move(words); }
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;
    bool paintFrom(QImage& picture, const PlotFrame& frame, double x) override;

private:
    void paintAll(QPainter& painter, const PlotFrame& frame, double left) const;
    void paintScale(QPainter& painter, const PlotFrame& frame) const;
    /// `left`: nothing left of it is seen.
    void paintLine(QPainter& painter, const LaneSeries& series, const PlotFrame& frame, double left) const;
    void paintRings(QPainter& painter, const LaneSeries& series, const PlotFrame& frame) const;
    void paintLimit(QPainter& painter, const PlotFrame& frame) const;
    void paintEnd(QPainter& painter, const PlotFrame& frame) const;

    TextLabel* note_;
    std::vector<LaneSeries> series_;
    PlotScale scale_;
    std::optional<double> limit_;
    QString limitText_, endText_;
    std::optional<base::TimeNs> end_;
    bool endAccent_ = false;
    std::vector<base::TimeNs> rules_;
    std::function<QString()> spoken_;
};

/// A dotted line2 rule through a plot.
void paintRule(QPainter& painter, double x, const QRectF& plot, const ThemeTokens& theme);

} // namespace vitrine::ui

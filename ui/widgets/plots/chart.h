// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Small fixed plots over Qt Charts in the theme's colours: the only place that knows Qt Charts. Series are given in
// data units; a caller that shows bytes scales them to the unit that its axis names.

#include <QPointF>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ui/widgets/base/plot_widget.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

using ThemeColor = std::function<QColor(const ThemeTokens&)>;

struct ChartSeries {
    enum class Kind : std::uint8_t { Line, Area, Dots };
    QString name;
    Kind kind = Kind::Line;
    std::vector<QPointF> points; ///< by x
    std::vector<QPointF> below;  ///< lower edge of an area; empty: the x axis
    ThemeColor color;
    Hatch hatch = Hatch::None; ///< of an area
    double width = 1.5;        ///< of a line; diameter of dots
    bool dashed = false;
};

struct ChartAxis {
    QString title;  ///< with the unit: "tokens", "GiB"
    double top = 1; ///< the axis runs up to here
    std::vector<std::pair<double, QString>> ticks;
    double begin = 0; ///< and from here
};

/// A line across the plot with words beside it.
struct ChartMark {
    Qt::Orientation orientation = Qt::Vertical;
    double at = 0;
    QString text;
};

/// Words at a point of the plot, right-aligned at it, moved so that they stay inside and do not cover each other.
struct ChartNote {
    QPointF at;
    QString text;
    ThemeColor color;
    bool strong = false;
    bool toRight = false; ///< left-aligned at the point
};

class Chart final : public PlotWidget {
    Q_OBJECT

public:
    Chart(const QString& title, QWidget* parent);
    ~Chart() override;

    void setAxes(ChartAxis x, ChartAxis y);
    void setSeries(std::vector<ChartSeries> series);
    void setMarks(std::vector<ChartMark> marks);
    void setNotes(std::vector<ChartNote> notes);
    /// Where the cursor may stand, ascending, and what it says there; without stops there is no cursor.
    void setStops(std::vector<double> stops, std::function<QString(double)> words);

    std::optional<double> cursor() const { return cursor_; }
    void setCursor(std::optional<double> x);
    QString spoken() const override;

    QRectF plotArea() const;
    QPointF place(const QPointF& value) const; ///< of a value, in the widget
    double valueAt(double x) const;
    double axisEnd() const { return x_.top; } ///< of the x axis
    std::size_t seriesCount() const;

signals:
    void cursorMoved();
    void dotClicked(int series, int point); ///< of a series of dots
    void dotHovered(int series, int point); ///< the pointer came to it; -1: it left

protected:
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    class Canvas;
    void restyle();
    void build();
    void stepCursor(int steps);
    std::optional<double> nearestStop(double x) const;
    using Dot = std::pair<int, int>; ///< series and point; -1: none
    Dot dotAt(QPointF position) const;
    void hover(Dot dot);

    Canvas* canvas_;
    ChartAxis x_, y_;
    std::vector<ChartSeries> series_;
    std::vector<ChartMark> marks_;
    std::vector<ChartNote> notes_;
    std::vector<double> stops_;
    std::function<QString(double)> words_;
    std::optional<double> cursor_;
    Dot hovered_{-1, -1};
};

/// Round numbers from 0 to at or above `top`, at most `lines` of them.
std::vector<double> roundTicks(double top, int lines);

} // namespace vitrine::ui

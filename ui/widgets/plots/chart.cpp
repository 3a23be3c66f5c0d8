// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/chart.h"

#include <QAreaSeries>
#include <QChart>
#include <QChartView>
#include <QKeyEvent>
#include <QLineSeries>
#include <QMouseEvent>
#include <QPainter>
#include <QScatterSeries>
#include <QVBoxLayout>
#include <QValueAxis>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/chart_canvas.h"

namespace vitrine::ui {

namespace {

constexpr double kDashOn = 5, kDashOff = 3;

QList<QPointF> listOf(const std::vector<QPointF>& points) {
    return {points.begin(), points.end()};
}

/// The area between a series' two lines, without a border; the chart owns all three.
QAreaSeries* areaOf(const ChartSeries& from, QChart* chart) {
    auto* upper = new QLineSeries(chart);
    upper->replace(listOf(from.points));
    QLineSeries* lower = nullptr;
    if (!from.below.empty()) {
        lower = new QLineSeries(chart);
        lower->replace(listOf(from.below));
    }
    auto* area = new QAreaSeries(upper, lower);
    area->setPen(Qt::NoPen);
    return area;
}

} // namespace

Chart::Chart(const QString& title, QWidget* parent) : PlotWidget(title, parent), canvas_(new Canvas(this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(canvas_);
    connect(&Theme::instance(), &Theme::changed, this, &Chart::restyle);
    restyle();
}

Chart::~Chart() = default;

void Chart::setAxes(ChartAxis x, ChartAxis y) {
    x_ = std::move(x);
    y_ = std::move(y);
    for (ChartAxis* axis : {&x_, &y_}) {
        axis->top = axis->top > axis->begin ? axis->top : axis->begin + 1;
    }
    build();
}

void Chart::setSeries(std::vector<ChartSeries> series) {
    series_ = std::move(series);
    build();
}

void Chart::setMarks(std::vector<ChartMark> marks) {
    marks_ = std::move(marks);
    canvas_->viewport()->update();
}

void Chart::setNotes(std::vector<ChartNote> notes) {
    notes_ = std::move(notes);
    canvas_->viewport()->update();
}

void Chart::setStops(std::vector<double> stops, std::function<QString(double)> words) {
    stops_ = std::move(stops);
    words_ = std::move(words);
    if (cursor_) {
        setCursor(*cursor_);
    }
}

void Chart::restyle() {
    canvas_->resetCachedContent();
    build();
}

void Chart::build() {
    const ThemeTokens& t = themeTokens();
    QChart* chart = canvas_->chart();
    chart->removeAllSeries();
    for (const ChartSeries& from : series_) {
        const QColor color = from.color ? from.color(t) : t.text1;
        QAbstractSeries* made = nullptr;
        if (from.kind == ChartSeries::Kind::Area) {
            QAreaSeries* area = areaOf(from, chart);
            area->setBrush(color);
            made = area;
        } else if (from.kind == ChartSeries::Kind::Dots) {
            auto* dots = new QScatterSeries(chart);
            dots->replace(listOf(from.points));
            dots->setMarkerSize(from.width);
            dots->setColor(color);
            dots->setBorderColor(t.canvas);
            made = dots;
        } else {
            auto* line = new QLineSeries(chart);
            line->replace(listOf(from.points));
            QPen pen(color, from.width);
            if (from.dashed) {
                pen.setDashPattern({kDashOn / from.width, kDashOff / from.width});
                pen.setCapStyle(Qt::FlatCap);
            }
            line->setPen(pen);
            made = line;
        }
        made->setName(from.name);
        canvas_->attach(made);
        if (from.kind == ChartSeries::Kind::Area && from.hatch != Hatch::None) {
            // Qt Charts takes one brush: the hatch lies over the fill as a second area.
            QAreaSeries* area = areaOf(from, chart);
            const bool darkFill = color.lightnessF() < 0.5;
            area->setBrush(hatchBrush(from.hatch, 6, withAlpha(darkFill ? QColor(Qt::white) : QColor(Qt::black), 0.24),
                                      devicePixelRatioF()));
            canvas_->attach(area);
        }
    }
    canvas_->layOut();
}

std::size_t Chart::seriesCount() const {
    return series_.size();
}

QRectF Chart::plotArea() const {
    return canvas_->chart()->plotArea();
}

QPointF Chart::place(const QPointF& value) const {
    return canvas_->place(value);
}

double Chart::valueAt(double x) const {
    const QRectF area = plotArea();
    return area.width() > 0 ? x_.begin + (x - area.left()) / area.width() * (x_.top - x_.begin) : 0;
}

std::optional<double> Chart::nearestStop(double x) const {
    if (stops_.empty()) {
        return std::nullopt;
    }
    const auto after = std::lower_bound(stops_.begin(), stops_.end(), x);
    if (after == stops_.end()) {
        return stops_.back();
    }
    return after != stops_.begin() && x - *(after - 1) < *after - x ? *(after - 1) : *after;
}

void Chart::setCursor(std::optional<double> x) {
    const std::optional<double> next = x ? nearestStop(*x) : std::nullopt;
    if (next == cursor_) {
        return;
    }
    cursor_ = next;
    canvas_->viewport()->update();
    announce();
    emit cursorMoved();
}

QString Chart::spoken() const {
    return cursor_ && words_ ? words_(*cursor_) : QString();
}

void Chart::stepCursor(int steps) {
    if (stops_.empty()) {
        return;
    }
    const auto last = static_cast<std::ptrdiff_t>(stops_.size()) - 1;
    std::ptrdiff_t at = steps > 0 ? -1 : last + 1;
    if (cursor_) {
        at = std::lower_bound(stops_.begin(), stops_.end(), *cursor_) - stops_.begin();
    }
    setCursor(stops_[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at + steps, 0, last))]);
}

Chart::Dot Chart::dotAt(QPointF position) const {
    constexpr double kReach = 8; // px
    Dot best{-1, -1};
    double nearest = kReach;
    for (std::size_t i = 0; i < series_.size(); ++i) {
        for (std::size_t k = 0; series_[i].kind == ChartSeries::Kind::Dots && k < series_[i].points.size(); ++k) {
            const QPointF away = place(series_[i].points[k]) - position;
            if (const double distance = std::hypot(away.x(), away.y()); distance < nearest) {
                nearest = distance;
                best = {static_cast<int>(i), static_cast<int>(k)};
            }
        }
    }
    return best;
}

void Chart::hover(Dot dot) {
    if (dot != hovered_) {
        hovered_ = dot;
        emit dotHovered(dot.first, dot.second);
    }
}

void Chart::mousePressEvent(QMouseEvent* event) {
    PlotWidget::mousePressEvent(event);
    if (const Dot dot = dotAt(event->position()); event->button() == Qt::LeftButton && dot.first >= 0) {
        emit dotClicked(dot.first, dot.second);
    }
}

void Chart::mouseMoveEvent(QMouseEvent* event) {
    hover(dotAt(event->position()));
    if (plotArea().adjusted(-4, 0, 4, 0).contains(event->position())) {
        setCursor(valueAt(event->position().x()));
    } else {
        setCursor(std::nullopt);
    }
}

void Chart::leaveEvent(QEvent* event) {
    PlotWidget::leaveEvent(event);
    hover({-1, -1});
    if (!hasFocus()) {
        setCursor(std::nullopt);
    }
}

void Chart::keyPressEvent(QKeyEvent* event) {
    const int page = std::max(1, static_cast<int>(stops_.size()) / 20);
    switch (event->key()) {
    case Qt::Key_Left:
        return stepCursor(-1);
    case Qt::Key_Right:
        return stepCursor(1);
    case Qt::Key_PageUp:
        return stepCursor(-page);
    case Qt::Key_PageDown:
        return stepCursor(page);
    case Qt::Key_Home:
        return stepCursor(-static_cast<int>(stops_.size()));
    case Qt::Key_End:
        return stepCursor(static_cast<int>(stops_.size()));
    case Qt::Key_Escape:
        if (cursor_) {
            return setCursor(std::nullopt);
        }
        break;
    default:
        break;
    }
    PlotWidget::keyPressEvent(event);
}

void Chart::resizeEvent(QResizeEvent* event) {
    PlotWidget::resizeEvent(event);
    canvas_->viewport()->update();
}

void Chart::focusInEvent(QFocusEvent* event) {
    PlotWidget::focusInEvent(event);
    canvas_->viewport()->update();
}

void Chart::focusOutEvent(QFocusEvent* event) {
    PlotWidget::focusOutEvent(event);
    canvas_->viewport()->update();
}

std::vector<double> roundTicks(double top, int lines) {
    std::vector<double> ticks;
    if (!(top > 0) || !std::isfinite(top) || lines < 1) {
        return {0};
    }
    double decade = std::pow(10, std::floor(std::log10(top / lines)));
    double step = decade;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        step = decade * factor;
        if (top / step <= lines) {
            break;
        }
    }
    for (int i = 0; i <= lines + 1; ++i) {
        ticks.push_back(step * i);
        if (step * i >= top) {
            break;
        }
    }
    return ticks;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/series_plot.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

using Mark = LaneSeries::Mark;

constexpr double kSeriesAir = 8;
constexpr double kRing = 3.5, kDot = 2.6, kHalfSquare = 2.5;
constexpr double kBandAlpha = 0.17;
constexpr double kLetterGap = 7, kLetterHeight = 13;

QColor colorOf(const LaneSeries& series, const ThemeTokens& theme, const QColor& usual) {
    return series.color ? series.color(theme) : usual;
}

QPen linePen(Mark mark, const QColor& color, bool lettered) {
    const double width = lettered ? 1.5 : mark == Mark::Thin ? 1 : 2;
    QPen pen(color, width);
    if (mark == Mark::Dashed) {
        pen.setDashPattern({5 / width, 3 / width}); // px
        pen.setCapStyle(Qt::FlatCap);
    }
    return pen;
}

void paintLine(QPainter& painter, const LaneSeries& series, const PlotScale& scale, const AxisMap& axis,
               const QRectF& plot, double dpr, double left, const ThemeTokens& t) {
    const QColor color = colorOf(series, t, t.text2);
    const bool dashed = series.mark == Mark::Dashed;
    const bool bold = series.mark == Mark::Bold || dashed;
    painter.setRenderHint(QPainter::Antialiasing, bold);
    const QPen pen = linePen(series.mark, color, !series.letter.isNull());
    QPolygonF line;
    const auto flush = [&] {
        if (line.size() == 1) { // one value alone is a dot
            painter.fillRect(QRectF(line.front().x() - 1.5, line.front().y() - 1.5, 3, 3), color);
        }
        painter.setPen(pen);
        painter.drawPolyline(line);
        line.clear();
    };
    const std::vector<PlotSample> samples = series.samples(axis, std::max(1, static_cast<int>(plot.width() * dpr)));
    // Two samples before the part that is seen, whose line reaches into it. Dashes are counted from the first one.
    const auto seen = std::ranges::lower_bound(samples, left - plot.left(), {}, &PlotSample::x) - samples.begin();
    for (const PlotSample& sample :
         std::span(samples).subspan(dashed || seen < 2 ? 0 : static_cast<std::size_t>(seen) - 2)) {
        if (!std::isfinite(sample.value)) {
            flush();
            continue;
        }
        const double x = plot.left() + sample.x;
        if (sample.high > scale.high) { // above the scale: said at its edge
            painter.fillRect(QRectF(x - 0.5, plot.top(), 1, 3), t.warn);
        }
        if (sample.low < scale.low) {
            painter.fillRect(QRectF(x - 0.5, plot.bottom() - 3, 1, 3), t.warn);
        }
        if (sample.high > sample.low && !dashed) {
            const double high = seriesY(scale, sample.high, plot), low = seriesY(scale, sample.low, plot);
            painter.fillRect(QRectF(x - 0.5 / dpr, high, 1 / dpr, std::max(1 / dpr, low - high)), color);
        }
        line << QPointF(x, seriesY(scale, sample.value, plot));
    }
    flush();
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void paintBand(QPainter& painter, const LaneSeries& series, const PlotScale& scale, const AxisMap& axis,
               const QRectF& plot, double dpr, const ThemeTokens& t) {
    QPolygonF above, below;
    const auto flush = [&] {
        std::ranges::reverse(below);
        painter.drawPolygon(above + below);
        above.clear();
        below.clear();
    };
    painter.setPen(Qt::NoPen);
    painter.setBrush(withAlpha(colorOf(series, t, t.text2), kBandAlpha));
    for (const PlotSample& sample : series.samples(axis, std::max(1, static_cast<int>(plot.width() * dpr)))) {
        if (!std::isfinite(sample.value)) {
            flush();
            continue;
        }
        const double x = plot.left() + sample.x;
        above << QPointF(x, seriesY(scale, sample.high, plot));
        below << QPointF(x, seriesY(scale, sample.low, plot));
    }
    flush();
}

/// `size`: half of it. A mark stands on a ground of canvas, so that those below it do not blur it.
void paintMark(QPainter& painter, Mark mark, QPointF at, double size, const QColor& color, const QColor& ground) {
    painter.setPen(mark == Mark::Dot ? QPen(Qt::NoPen) : QPen(color, mark == Mark::Ring ? 1.5 : 1.3));
    painter.setBrush(mark == Mark::Dot ? color : ground);
    if (mark == Mark::Square) {
        painter.drawRect(QRectF(at.x() - size, at.y() - size, 2 * size, 2 * size));
    } else {
        painter.drawEllipse(at, size, size);
    }
}

void paintMarks(QPainter& painter, const LaneSeries& series, const PlotScale& scale, const AxisMap& axis,
                const QRectF& plot, const ThemeTokens& t) {
    const double size = series.mark == Mark::Ring ? kRing : series.mark == Mark::Dot ? kDot : kHalfSquare;
    painter.setRenderHint(QPainter::Antialiasing, series.mark != Mark::Square);
    for (const PlotSample& sample : series.samples(axis, std::max(1, static_cast<int>(plot.width() / (2 * size))))) {
        if (std::isfinite(sample.value)) {
            paintMark(painter, series.mark, {plot.left() + sample.x, seriesY(scale, sample.value, plot)}, size,
                      colorOf(series, t, t.text1), t.canvas);
        }
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

/// Letters of runs that end at the same place do not cover each other.
void paintLetters(QPainter& painter, const SeriesPlot& plot, const AxisMap& axis, const QRectF& rect, double dpr,
                  const ThemeTokens& t) {
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    LabelPlaces places;
    for (const LaneSeries& series : plot.series) {
        if (series.letter.isNull()) {
            continue;
        }
        const std::vector<PlotSample> samples = series.samples(axis, std::max(1, static_cast<int>(rect.width() * dpr)));
        const auto last = std::find_if(samples.rbegin(), samples.rend(), [&](const PlotSample& sample) {
            return std::isfinite(sample.value) && sample.x <= rect.width();
        });
        if (last == samples.rend() || last->x < 0) {
            continue;
        }
        const QString words(series.letter);
        const double wide = textWidth(words, font) + 1;
        const double x = std::min(rect.left() + last->x + kLetterGap, rect.right() - wide);
        const double y = std::clamp(seriesY(plot.scale, last->value, rect) - kLetterHeight / 2, rect.top(),
                                    rect.bottom() - kLetterHeight);
        // Below, above, and beside it where the plot is too low for that.
        constexpr double kApart = kLetterHeight + 1;
        const QPointF shifts[] = {{0, 0}, {0, kApart}, {0, -kApart}, {wide + 2, 0}};
        for (const QPointF& shift : shifts) {
            const QRectF box(x + shift.x(), y + shift.y(), wide, kLetterHeight);
            const bool inside = box.top() >= rect.top() && box.bottom() <= rect.bottom() + 1;
            if ((inside || shift.y() == 0) && places.take(box)) {
                drawText(painter, box, Qt::AlignVCenter, words, colorOf(series, t, t.text1), font);
                break;
            }
        }
    }
}

/// How many times one of two logarithms the other is, beside the cursor.
void paintRatio(QPainter& painter, const PlotScale& scale, const QRectF& plot, double cursor,
                std::pair<double, double> values, const ThemeTokens& t) {
    constexpr double kLeastRoom = 14, kEnd = 3;
    const double top = seriesY(scale, values.second, plot) + 5, bottom = seriesY(scale, values.first, plot) - 5;
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const QString words = QObject::tr("%1 times").arg(std::pow(10.0, values.second - values.first), 0, 'f', 1);
    const double wide = textWidth(words, font) + 2;
    const double x = std::floor(cursor) - 9, left = x - 8 - wide;
    if (bottom - top < kLeastRoom || left < plot.left()) {
        return;
    }
    plumbline(painter, x, top, bottom, t.text2);
    for (const double y : {top, bottom}) {
        hairline(painter, x - kEnd, x + kEnd + 1, y, t.text2);
    }
    const QRectF box(left, (top + bottom) / 2 - 8, wide, 16);
    painter.fillRect(box, withAlpha(t.canvas, 0.86));
    drawText(painter, box, Qt::AlignVCenter, words, t.text1, font);
}

/// Small ticks between decades.
void paintDecadeTicks(QPainter& painter, const PlotScale& scale, const QRectF& plot, const ThemeTokens& t) {
    for (int decade = static_cast<int>(scale.low); decade < static_cast<int>(scale.high); ++decade) {
        for (int digit = 2; digit < 10; ++digit) {
            hairline(painter, plot.left() - 3, plot.left(),
                     std::floor(seriesY(scale, decade + std::log10(digit), plot)), t.line1);
        }
    }
}

} // namespace

double seriesY(const PlotScale& scale, double value, const QRectF& plot) {
    const double air = std::min(kSeriesAir, plot.height() / 5);
    const double part = (value - scale.low) / std::max(scale.high - scale.low, 1e-300);
    return plot.bottom() - air - std::clamp(part, 0.0, 1.0) * std::max(1.0, plot.height() - 2 * air);
}

void paintSeriesScale(QPainter& painter, const PlotScale& scale, const QRectF& plot, double gutter,
                      const ThemeTokens& theme) {
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const int lines = scale.lines();
    // Every line where numbers do not touch, else the ends.
    const bool roomy = lines < 2 || seriesY(scale, scale.line(0), plot) - seriesY(scale, scale.line(1), plot) >= 15;
    for (int i = 0; i < lines; i += roomy ? 1 : std::max(1, lines - 1)) {
        const double y = std::floor(seriesY(scale, scale.line(i), plot));
        hairline(painter, plot.left(), plot.right(), y, theme.line0);
        const double top = std::clamp(y - 7, plot.top(), std::max(plot.top(), plot.bottom() - 14));
        drawText(painter, QRectF(0, top, gutter - 8, 14), Qt::AlignRight | Qt::AlignVCenter, scale.text(scale.line(i)),
                 theme.text3, font);
    }
    if (scale.decades && roomy) {
        paintDecadeTicks(painter, scale, plot, theme);
    }
}

void paintSeries(QPainter& painter, const SeriesPlot& plot, const AxisMap& axis, const QRectF& rect, double dpr,
                 double left, const ThemeTokens& theme) {
    for (const LaneSeries& series : plot.series) {
        switch (series.mark) {
        case Mark::Band:
            paintBand(painter, series, plot.scale, axis, rect, dpr, theme);
            break;
        case Mark::Ring:
        case Mark::Dot:
        case Mark::Square:
            paintMarks(painter, series, plot.scale, axis, rect, theme);
            break;
        default:
            paintLine(painter, series, plot.scale, axis, rect, dpr, left, theme);
            break;
        }
    }
    paintLetters(painter, plot, axis, rect, dpr, theme);
}

void paintSeriesMarks(QPainter& painter, const SeriesPlot& plot, const AxisMap& axis, const QRectF& rect,
                      base::TimeNs place, const ThemeTokens& theme) {
    const double x = axis.x(place);
    if (x < 0 || x > rect.width()) {
        return;
    }
    std::vector<double> values;
    painter.setRenderHint(QPainter::Antialiasing);
    for (const LaneSeries& series : plot.series) {
        const std::optional<double> value = series.at ? series.at(place) : std::nullopt;
        if (!value || !std::isfinite(*value)) {
            continue;
        }
        values.push_back(*value);
        const QPointF at(rect.left() + x, seriesY(plot.scale, *value, rect));
        const bool isA = series.letter == QLatin1Char('A');
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.canvas);
        painter.drawEllipse(at, 4.5, 4.5);
        paintMark(painter, isA ? Mark::Dot : Mark::Square, at, isA ? 3 : kHalfSquare,
                  colorOf(series, theme, theme.text1), theme.canvas);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    if (plot.scale.decades && values.size() == 2) {
        paintRatio(painter, plot.scale, rect, rect.left() + x, std::minmax(values[0], values[1]), theme);
    }
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/stack_marks.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

void drawFailure(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                 const base::OutOfMemoryEvent& failure, LabelPlaces& places, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const double x = plot.left() + input.axis.x(failure.time);
    if (x < plot.left() || x > plot.right() + 1) {
        return;
    }
    const double low = plot.top() + scale.y(static_cast<double>(failure.reserved));
    const double high = plot.top() + scale.y(static_cast<double>(failure.reserved + failure.requested));
    const QRectF ghost(std::floor(x), std::floor(high), std::max(24.0, plot.right() - 8 - x),
                       std::max(2.0, low - high));
    const QRectF inside = ghost.intersected(plot.adjusted(0, 0, 0, 0));
    painter.fillRect(inside, hatchBrush(Hatch::BackDiagonal, 6, withAlpha(theme.bad, 0.75), frame.dpr));
    painter.setPen(QPen(theme.bad, 1, Qt::CustomDashLine));
    QPen dashed(theme.bad, 1);
    dashed.setDashPattern({4, 2});
    painter.setPen(dashed);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(inside.adjusted(0.5, 0.5, -0.5, -0.5));
    plumbline(painter, x, plot.top(), plot.bottom(), theme.bad);
    const QFont strong = Theme::instance().font(TypeRole::Table, true), plain = Theme::instance().font(TypeRole::Table);
    const QString asked = QObject::tr("Asked for %1").arg(bytesText(failure.requested));
    const std::uint64_t needed = failure.reserved + failure.requested;
    const QString over = needed > failure.budget
                             ? QObject::tr("%1 over the budget").arg(bytesText(needed - failure.budget))
                             : QObject::tr("no free block is large enough");
    const double width = std::max(textWidth(asked, strong), textWidth(over, plain)) + 2;
    double right = x - 10;
    const double top =
        std::clamp(plot.top() + scale.y(static_cast<double>(failure.budget)) - 50, plot.top() + 4, plot.bottom() - 36);
    if (right - width < plot.left()) {
        return; // the ruler's mark says it
    }
    const QRectF box(right - width, top, width, 32);
    if (places.take(box)) {
        drawText(painter, QRectF(box.left(), top, width, 16), Qt::AlignRight | Qt::AlignVCenter, asked, theme.bad,
                 strong);
        drawText(painter, QRectF(box.left(), top + 16, width, 16), Qt::AlignRight | Qt::AlignVCenter, over, theme.text2,
                 plain);
    }
}

void drawBudget(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                LabelPlaces& places, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    QString text = QObject::tr("Budget %1").arg(bytesText(*input.budget));
    double y = std::floor(plot.top() + scale.y(static_cast<double>(*input.budget)));
    const bool inside = *input.budget <= scale.top;
    if (!inside) {
        text = QObject::tr("▲ %1, above this scale").arg(text);
        y = plot.top() + 17;
    } else {
        QPen pen(theme.bad, 1);
        pen.setDashPattern({6, 3});
        painter.setPen(pen);
        painter.drawLine(QPointF(plot.left(), y + 0.5), QPointF(plot.right(), y + 0.5));
        places.take(QRectF(plot.left() + 200, y - 1, plot.width() - 200, 3));
    }
    const double width = textWidth(text, font);
    const double boxTop = y - 17 < plot.top() ? y + 2 : y - 17;
    // At the left, unless the peak's mark stands there: then after it.
    QRectF box(plot.left() + 1, boxTop, width + 10, 16);
    for (double x = box.left(); !places.take(box) && x + box.width() < plot.right(); x += 12) {
        box.moveLeft(x + 12);
    }
    painter.fillRect(box, theme.canvas);
    drawText(painter, box.adjusted(5, 0, 4, 0), Qt::AlignVCenter, text, theme.bad, font);
}

/// The triangle that points down at the peak; none where the peak is out of sight.
std::optional<QPolygonF> peakTriangle(const StackInput& input, const PlotFrame& frame, const ByteScale& scale) {
    const QRectF plot = frame.plot();
    if (!input.peak) {
        return std::nullopt;
    }
    const double x = plot.left() + input.axis.x(input.peak->maxTime);
    if (x < plot.left() || x > plot.right()) {
        return std::nullopt;
    }
    const double y = plot.top() + scale.y(static_cast<double>(input.peak->maxTotal));
    const double tip = y < plot.top() + 12 ? plot.top() + 10 : y - 2;
    return QPolygonF({{x, tip}, {x - 4, tip - 7}, {x + 4, tip - 7}});
}

void drawPeak(QPainter& painter, const QPolygonF& triangle, const StackInput& input, const PlotFrame& frame,
              const ByteScale& scale, LabelPlaces& places, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const double x = triangle.front().x(), base = triangle.back().y();
    const double y = plot.top() + scale.y(static_cast<double>(input.peak->maxTotal));
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    QPainterPath path;
    path.addPolygon(triangle);
    path.closeSubpath();
    painter.fillPath(path, theme.text1);
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const QString name = input.peakName.isEmpty() ? QObject::tr("Peak") : input.peakName;
    const QString text = name + QLatin1Char(' ') + peakText(input.peak->maxTotal, input.peak->incomplete);
    const double width = textWidth(text, font) + 2;
    bool drawn = false;
    for (const double dy : {-34.0, -52.0, -16.0, 6.0}) {
        for (const bool toRight : {true, false}) {
            const QRectF box(toRight ? x + 10 : x - 10 - width, y + dy, width, 16);
            if (drawn || !plot.contains(box) || !places.take(box)) {
                continue;
            }
            if (dy < -16) {
                painter.setPen(theme.text3);
                painter.drawLine(QPointF(toRight ? box.left() - 2 : box.right() + 2, box.center().y() + 1),
                                 QPointF(x + 0.5, base - 1));
            }
            if (dy > -20) {
                painter.fillRect(box.adjusted(-3, 0, 3, 0), withAlpha(theme.canvas, 0.85));
            }
            drawText(painter, box, Qt::AlignVCenter, text, theme.text1, font);
            drawn = true;
        }
    }
    painter.restore();
}

void drawReserved(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                  const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    QPolygonF line;
    double last = -1;
    for (const auto& [time, value] : *input.reserved) {
        const double x = std::clamp(input.axis.x(time), 0.0, plot.width());
        if (last >= 0) {
            line << QPointF(plot.left() + x, plot.top() + scale.y(last));
        }
        line << QPointF(plot.left() + x, plot.top() + scale.y(value));
        last = value;
    }
    if (last >= 0) {
        line << QPointF(plot.right(), plot.top() + scale.y(last));
    }
    QPen pen(theme.text2, 1);
    pen.setDashPattern({2, 2});
    painter.setPen(pen);
    painter.drawPolyline(line);
}

/// The plan's total as a dashed line with its peak in words, and how far the measured peak is from it.
void drawPlan(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
              LabelPlaces& places, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const double wide = plot.width() / static_cast<double>(input.plan.size());
    painter.save();
    painter.setClipRect(plot);
    QPen halo(withAlpha(theme.canvas, 0.8), 3);
    QPen pen(theme.text1, 1);
    pen.setDashPattern({5, 3});
    QPolygonF line;
    std::size_t highest = 0;
    const auto flush = [&] {
        if (line.size() > 1) {
            painter.setPen(halo);
            painter.drawPolyline(line);
            painter.setPen(pen);
            painter.drawPolyline(line);
        }
        line.clear();
    };
    for (std::size_t i = 0; i < input.plan.size(); ++i) {
        if (!input.plan[i]) {
            flush();
            continue;
        }
        highest = *input.plan[i] > input.plan[highest].value_or(0) ? i : highest;
        const double y = std::floor(plot.top() + scale.y(static_cast<double>(*input.plan[i]))) + 0.5;
        line << QPointF(plot.left() + static_cast<double>(i) * wide, y)
             << QPointF(plot.left() + static_cast<double>(i + 1) * wide, y);
    }
    flush();
    painter.restore();
    if (!input.plan[highest]) {
        return;
    }
    QString text = QObject::tr("Plan %1").arg(bytesText(input.planPeak));
    if (input.peak && input.planPeak > 0) {
        const double error = (static_cast<double>(input.planPeak) - static_cast<double>(input.peak->maxTotal)) /
                             static_cast<double>(input.peak->maxTotal) * 100;
        text += QStringLiteral(", %1%2\u00A0%")
                    .arg(error < -0.05  ? QStringLiteral("\u2212")
                         : error > 0.05 ? QStringLiteral("+")
                                        : QString())
                    .arg(std::abs(error), 0, 'f', 1);
    }
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const double width = textWidth(text, font) + 2;
    const double x = plot.left() + static_cast<double>(highest) * wide;
    const double y = plot.top() + scale.y(static_cast<double>(*input.plan[highest]));
    for (const double dy : {-20.0, 6.0, -38.0, 24.0, -56.0}) {
        for (const double dx : {8.0, -8.0 - width, 8.0 - width / 2}) {
            const QRectF box(std::clamp(x + dx, plot.left() + 4, std::max(plot.left() + 4, plot.right() - width - 4)),
                             y + dy, width, 16);
            if (plot.contains(box) && places.take(box.adjusted(-3, 0, 3, 0))) {
                painter.fillRect(box.adjusted(-3, 0, 3, 0), withAlpha(theme.canvas, 0.85));
                drawText(painter, box, Qt::AlignVCenter, text, theme.text2, font);
                return;
            }
        }
    }
}

} // namespace

void drawStackMarks(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                    LabelPlaces& places, const ThemeTokens& theme) {
    if (input.reserved) {
        drawReserved(painter, input, frame, scale, theme);
    }
    const auto peak = peakTriangle(input, frame, scale);
    if (peak) {
        places.take(peak->boundingRect().adjusted(-1, -1, 1, 1));
    }
    if (input.budget) {
        drawBudget(painter, input, frame, scale, places, theme);
    }
    for (const base::OutOfMemoryEvent& failure : input.failures) {
        drawFailure(painter, input, frame, scale, failure, places, theme);
    }
    if (peak) {
        drawPeak(painter, *peak, input, frame, scale, places, theme);
    }
    if (!input.plan.empty()) {
        drawPlan(painter, input, frame, scale, places, theme);
    }
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/stack_forecast.h"

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr double kForecastPlace = 0.06; ///< of the plot's width
constexpr double kForecastLabel = 14;

void dashedLine(QPainter& painter, const QRectF& plot, double y, const QColor& color, const QList<qreal>& pattern) {
    QPen pen(color, 1);
    pen.setDashPattern(pattern);
    painter.setPen(pen);
    painter.drawLine(QPointF(plot.left(), std::floor(y) + 0.5), QPointF(plot.right(), std::floor(y) + 0.5));
}

void labelAt(QPainter& painter, QPointF at, const QString& text, const QColor& color, const QFont& font,
             const ThemeTokens& theme) {
    const QRectF box(at, QSizeF(textWidth(text, font) + 4, kForecastLabel));
    painter.fillRect(box, withAlpha(theme.canvas, 0.72));
    drawText(painter, box.adjusted(2, 0, 0, 0), Qt::AlignVCenter, text, color, font);
}

void zigzag(QPainter& painter, const QRectF& plot, double y) {
    QPolygonF line;
    for (int i = 0; plot.left() + 4 * i <= plot.right(); ++i) {
        line << QPointF(plot.left() + 4 * i, y + (i % 2 == 0 ? -1.5 : 1.5));
    }
    painter.drawPolyline(line);
}

} // namespace

std::uint64_t StackForecast::highest() const {
    const auto band = static_cast<std::uint64_t>(static_cast<double>(planned) * (1 + share));
    return std::max({band, outline.value_or(0), value});
}

void paintForecast(QPainter& painter, const StackForecast& forecast, const AxisMap& axis, const PlotFrame& frame,
                   const ByteScale& scale, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const auto yOf = [&](double bytes) { return plot.top() + scale.y(bytes); };
    const double labelLeft = std::floor(plot.left() + plot.width() * kForecastPlace);
    if (forecast.planned > 0) {
        const auto planned = static_cast<double>(forecast.planned);
        const double high = std::round(yOf(planned * (1 + forecast.share)));
        const double low = std::round(yOf(planned * (1 - forecast.share)));
        const QRectF band(plot.left(), high, plot.width(), std::max(2.0, low - high));
        painter.fillRect(band, withAlpha(theme.canvas, 0.55));
        painter.fillRect(band, withAlpha(theme.accent, 0.38));
        dashedLine(painter, plot, band.center().y() - 0.5, theme.text1, {6, 4});
        labelAt(painter, {labelLeft, std::max(plot.top(), band.top() - kForecastLabel - 1)}, forecast.label,
                theme.accent, font, theme);
    }
    if (forecast.outline) {
        const double y = yOf(static_cast<double>(*forecast.outline));
        dashedLine(painter, plot, y, theme.warn, {3, 3});
        labelAt(painter,
                {plot.left() + plot.width() * 0.4, y > plot.top() + kForecastLabel ? y - kForecastLabel : y + 2},
                forecast.outlineLabel, theme.warn, font, theme);
    }
    const double x = forecast.end ? axis.x(*forecast.end) : -1;
    const QFont strong = Theme::instance().font(TypeRole::Axis, true);
    const double width = textWidth(forecast.endText, strong) + 2;
    if (x < 0 || x > plot.width()) {
        return;
    }
    plumbline(painter, plot.left() + x, plot.top(), plot.bottom(), withAlpha(theme.text1, 0.45));
    if (x + 4 + width <= plot.width() + 1) {
        const double y = std::min(yOf(static_cast<double>(forecast.value)) + 2, plot.bottom() - kForecastLabel);
        // Beside the area of the last step, which goes on for half a step, or on it where the room ends.
        const double beside = axis.x(*forecast.end + kStepLength / 2) + 4;
        const QRectF box(plot.left() + std::clamp(beside, x + 4, std::max(x + 4, plot.width() - width)), y, width,
                         kForecastLabel);
        painter.fillRect(box, withAlpha(theme.canvas, 0.86));
        drawText(painter, box, Qt::AlignVCenter, forecast.endText, theme.text1, strong);
    }
}

void paintBudgetBreak(QPainter& painter, const PlotFrame& frame, std::uint64_t budget,
                      std::optional<std::int64_t> spare, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis), strong = Theme::instance().font(TypeRole::Axis, true);
    constexpr double kLine = 9;
    dashedLine(painter, plot, plot.top() + kLine, theme.bad, {6, 3});
    drawText(painter, QRectF(0, plot.top() + 2, frame.gutter - 8, kForecastLabel), Qt::AlignRight | Qt::AlignVCenter,
             gibText(budget), theme.text3, font);
    const auto boxed = [&](double left, double width, const QString& text, const QColor& color, const QFont& with) {
        const QRectF box(left, plot.top() + 2, width, kForecastLabel);
        painter.fillRect(box, theme.canvas);
        drawText(painter, box.adjusted(4, 0, 0, 0), Qt::AlignVCenter, text, color, with);
    };
    const QString name = QObject::tr("Budget %1").arg(bytesText(budget));
    boxed(plot.left() + 4, textWidth(name, font) + 10, name, theme.bad, font);
    if (spare) {
        const auto bytes = static_cast<std::uint64_t>(std::abs(*spare));
        const QString text = (*spare >= 0 ? QObject::tr("%1 spare") : QObject::tr("%1 over")).arg(bytesText(bytes));
        const double width = textWidth(text, strong) + 10;
        boxed(plot.right() - width - 2, width, text, *spare >= 0 ? theme.good : theme.bad, strong);
    }
    painter.setPen(QPen(theme.line2, 1));
    zigzag(painter, plot, plot.top() + kBreakHeight - 8.5);
    zigzag(painter, plot, plot.top() + kBreakHeight - 4.5);
}

} // namespace vitrine::ui

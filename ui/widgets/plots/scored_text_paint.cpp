// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Tints and frames of tokens, and the legend that says what they mean.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/precision/number_ticks.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/scored_text.h"

namespace vitrine::ui {

namespace {

constexpr double kTints[] = {0, 0.14, 0.26, 0.38, 0.50};

QColor tintOf(int step, const ThemeTokens& t) {
    return withAlpha(step < 0 ? t.compareB : t.compareA, kTints[std::min(4, std::abs(step))]);
}

/// Solid where a token is less likely, dashed where it is more likely; or the other way round.
void drawUnderline(QPainter& painter, double left, double right, double y, double change, bool solidAbove,
                   const ThemeTokens& t) {
    if (!(std::abs(change) >= kUnderlinedChange)) {
        return;
    }
    QPen pen(change < 0 ? t.compareB : t.compareA, 1);
    if ((change > 0) != solidAbove) {
        pen.setDashPattern({2, 2});
    }
    painter.setPen(pen);
    painter.drawLine(QPointF(left, y), QPointF(right, y));
}

} // namespace

/// "−0.016 [9 swatches] +0.016, trainer − rollout"
void ScoredText::paintEndsLegend(QPainter& painter, double width) const {
    constexpr double kSwatchWide = 14;
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const QString largest = QString::number(unit_ * kChangeSteps[3], 'g', 3);
    const QString low = QStringLiteral("−") + largest;
    double x = kTextAir + drawText(painter, QRectF(kTextAir, 4, 80, 16), Qt::AlignVCenter, low, t.text3, axis) + 6;
    for (int step = -4; step <= 4; ++step, x += kSwatchWide) {
        const QRectF swatch(x, 7, kSwatchWide, 10);
        painter.fillRect(swatch, tintOf(step, t));
        const double change = step == 0 ? 0 : std::copysign(kChangeSteps[std::abs(step) - 1], step);
        drawUnderline(painter, swatch.left(), swatch.right(), swatch.bottom() - 0.5, change, true, t);
    }
    painter.setPen(QPen(t.line1, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(x - 9 * kSwatchWide - 0.5, 6.5, 9 * kSwatchWide + 1, 11));
    const QString high = QStringLiteral("+") + largest + (what_.isEmpty() ? QString() : QStringLiteral(", ") + what_);
    drawText(painter, QRectF(x + 6, 4, std::max(0.0, width - x - 8), 16), Qt::AlignVCenter, high, t.text3, axis);
}

void ScoredText::paintLegend(QPainter& painter, double width) const {
    if (ends_) {
        paintEndsLegend(painter, width);
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    double x = kTextAir;
    for (int step = -4; step <= 3 && x < width - 40; ++step) {
        const double change = step == 0 ? 0 : std::copysign(kChangeSteps[std::abs(step) - 1], step);
        const QRectF swatch(x, 6, 14, 12);
        painter.fillRect(swatch, tintOf(step, t));
        if (step == 0) {
            painter.setPen(QPen(t.line1, 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(swatch.adjusted(0.5, 0.5, -0.5, -0.5));
        }
        drawUnderline(painter, swatch.left(), swatch.right(), swatch.bottom() - 0.5, change, false, t);
        const int decimals = std::abs(step) == 1 ? 2 : step == 0 ? 0 : 1;
        x += 18 + drawText(painter, QRectF(x + 18, 4, 60, 16), Qt::AlignLeft | Qt::AlignVCenter,
                           signedDecimalText(change * unit_, decimals), t.text2, axis);
        x += 10;
    }
}

void ScoredText::paintToken(QPainter& painter, const Part& part, int token, QPointF shift) const {
    const double change = inUnits(token);
    const int step = changeStep(change);
    if (step == 0) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    for (const QRectF& rect : contentRects(part, token)) {
        const QRectF place = rect.translated(shift);
        painter.fillRect(place, tintOf(step, t));
        drawUnderline(painter, place.left(), place.right(), place.bottom() - 0.5, change, ends_, t);
    }
}

void ScoredText::paintFrame(QPainter& painter, int token, double wide) const {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(themeTokens().text1, wide));
    for (const QRectF& rect : rectsOf(token)) {
        painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5));
    }
}

} // namespace vitrine::ui

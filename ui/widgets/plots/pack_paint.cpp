// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/pack_paint.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

double packX(std::int64_t position, std::int64_t length, double width) {
    const double room = std::max(1.0, width - kGutter - kPackRight);
    return kGutter + static_cast<double>(position) / static_cast<double>(std::max<std::int64_t>(1, length)) * room;
}

std::int64_t packPosition(double x, std::int64_t length, double width) {
    const double room = std::max(1.0, width - kGutter - kPackRight);
    return static_cast<std::int64_t>(std::floor((x - kGutter) / room * static_cast<double>(length)));
}

std::int64_t rulerStep(std::int64_t length) {
    std::int64_t step = 1;
    while (step * 8 < length) {
        step *= 2;
    }
    return step;
}

QColor trainedColor(bool second) {
    const ThemeTokens& t = themeTokens();
    return !second ? t.accent : t.dark ? QColor(0x3F, 0x78, 0xC4) : QColor(0x4C, 0x8B, 0xD3);
}

void paintUntrained(QPainter& painter, const QRectF& rect, bool second, double dpr) {
    const QColor accent = themeTokens().accent;
    painter.fillRect(rect, withAlpha(accent, second ? 0.05 : 0.13));
    painter.fillRect(rect, hatchBrush(Hatch::BackDiagonal, 5, withAlpha(accent, 0.42), dpr));
}

void dashedFrame(QPainter& painter, const QRectF& rect) {
    QPen pen(themeTokens().line2, 1);
    pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect);
}

int packBeside(int item, int key, int count) {
    const bool back = key == Qt::Key_Left || key == Qt::Key_Up;
    return std::clamp(item < 0 ? 0 : item + (back ? -1 : 1), 0, std::max(0, count - 1));
}

void paintPackMark(QPainter& painter, double x, double y, const QColor& color) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    QPainterPath path(QPointF(x - 4, y - 6));
    path.lineTo(x + 4, y - 6);
    path.lineTo(x, y);
    path.closeSubpath();
    painter.fillPath(path, color);
    painter.restore();
}

} // namespace vitrine::ui

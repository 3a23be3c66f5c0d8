// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The words of PlanCurves: limits, names of sets and what the plan holds at its context. None covers another.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/views/planner/plan_curves.h"
#include "ui/views/planner/plan_curves_place.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

constexpr double kNumberRoom = 17; ///< of a square with its air
constexpr double kCircle = 4.5;    ///< radius

void drawDot(QPainter& painter, QPointF at, const QColor& color) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(color);
    painter.drawEllipse(at, 4, 4);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

/// The limits inside the plot, the chosen one first; one that several sets share is there once.
std::vector<const PlanCurve*> limitsOf(const PlanPicture& picture, std::int64_t top) {
    std::vector<const PlanCurve*> limits;
    for (const bool chosen : {true, false}) {
        for (const PlanCurve& curve : picture.curves) {
            const bool inside = curve.longest > 0 && curve.longest <= top && curve.chosen == chosen;
            const auto same = [&](const PlanCurve* other) { return other->longest == curve.longest; };
            if (inside && std::ranges::none_of(limits, same)) {
                limits.push_back(&curve);
            }
        }
    }
    return limits;
}

QString gibOf(double gib) {
    return QString::number(gib, 'f', 2);
}

} // namespace

void PlanCurves::drawLimits(QPainter& painter, const Place& place, LabelPlaces& places) const {
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    const double y = std::floor(place.yOf(picture_.device)) + 0.5;
    QPen pen(t.bad, 1);
    pen.setDashPattern({5, 3});
    painter.setPen(pen);
    painter.drawLine(QPointF(PlanAxis::kLeft, y), QPointF(place.plot().right(), y));
    const QString text = tr("device %1").arg(gibOf(picture_.device));
    const double room = textWidth(text, strong) + 2;
    const QRectF deviceBox(place.plot().right() - room, y + 2, room, 16);
    places.take(deviceBox);
    drawText(painter, deviceBox, Qt::AlignRight | Qt::AlignVCenter, text, t.bad, strong);
    const std::vector<const PlanCurve*> limits = limitsOf(picture_, place.x.top);
    const auto circleAt = [&place, this](const PlanCurve& curve) {
        const auto tokens = static_cast<double>(curve.longest);
        return QPointF(place.x.xOf(tokens), place.yOf(std::min(curve.at(tokens), picture_.device)));
    };
    for (const PlanCurve* curve : limits) {
        const QPointF at = circleAt(*curve);
        QPen down(t.line2, 1);
        down.setDashPattern({2, 3});
        painter.setPen(down);
        painter.drawLine(QPointF(std::floor(at.x()) + 0.5, at.y()), QPointF(std::floor(at.x()) + 0.5, place.bottom));
        painter.setPen(QPen(curve->chosen ? t.accent : t.text2, 1.5));
        painter.setBrush(t.canvas);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.drawEllipse(at, kCircle, kCircle);
        painter.setRenderHint(QPainter::Antialiasing, false);
        places.take(QRectF(at - QPointF(kCircle, kCircle), QSizeF(2 * kCircle, 2 * kCircle)));
    }
    for (const PlanCurve* curve : limits) {
        const QPointF at = circleAt(*curve);
        const QString words = countText(curve->longest);
        const double width = textWidth(words, strong) + 2;
        // Beside the circle above the line; where limits lie close together, below it or farther away.
        const double left = std::max(PlanAxis::kLeft + 2, at.x() - width - 7), right = at.x() + 7;
        for (const double down : {-18, 6, 22, -34}) {
            const QRectF before(left, at.y() + down, width, 16), behind(right, at.y() + down, width, 16);
            const bool inside = before.top() >= 0 && before.bottom() <= place.bottom;
            const bool taken = inside && places.take(before);
            if (taken || (inside && behind.right() <= place.plot().right() && places.take(behind))) {
                const QRectF& box = taken ? before : behind;
                painter.fillRect(box, withAlpha(t.canvas, 0.8));
                drawText(painter, box, Qt::AlignVCenter, words, curve->chosen ? t.accent : t.text1, strong);
                break;
            }
        }
    }
}

void PlanCurves::drawName(QPainter& painter, const Place& place, std::size_t index, LabelPlaces& places) const {
    const PlanCurve& curve = picture_.curves[index];
    if (curve.points.empty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const double width = textWidth(curve.name, font) + 4;
    // Right of the line at a height of its own; where that is taken, at another height, else the number alone.
    const auto pointAt = [&](double share) {
        double low = 0, high = static_cast<double>(place.x.top) * 0.6;
        for (int i = 0; i < 40; ++i) {
            const double middle = (low + high) / 2;
            (curve.at(middle) < picture_.device * share ? low : high) = middle;
        }
        return QPointF(place.x.xOf(low) + 8, std::min(place.yOf(curve.at(low)) + 2, place.bottom - 18));
    };
    const double own = 0.76 - 0.1 * static_cast<double>(index);
    for (const double room : {width + 24, kNumberRoom}) {
        for (const double change : {0.0, 0.1, -0.1, 0.2, -0.2, -0.3, -0.4}) {
            const QPointF at = pointAt(own + change);
            const QRectF box(at.x() - 2, at.y() - 1, room, 18);
            if (box.right() > place.plot().right() || !places.take(box)) {
                continue;
            }
            if (room > kNumberRoom) {
                painter.fillRect(box, withAlpha(t.canvas, 0.8));
                drawText(painter, QRectF(at.x() + 21, at.y() - 1, width, 17), Qt::AlignVCenter, curve.name,
                         curve.chosen ? t.accent : t.text1, font);
            }
            drawSetNumber(painter, at, index, curve.chosen);
            return;
        }
    }
}

void PlanCurves::drawContext(QPainter& painter, const Place& place, LabelPlaces& places) const {
    if (picture_.context > place.x.top) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    const double x = std::floor(place.x.xOf(static_cast<double>(picture_.context)));
    plumbline(painter, x, place.top, place.bottom, t.text1);
    const QString tag = countText(picture_.context);
    const double width = textWidth(tag, strong) + 16;
    const double left = std::clamp(x - width / 2, PlanAxis::kLeft, place.plot().right() - width);
    painter.fillRect(QRectF(left, place.bottom + 1, width, 18), t.text1);
    drawText(painter, QRectF(left, place.bottom + 1, width, 18), Qt::AlignCenter, tag, t.canvas, strong);
    drawPlan(painter, place, places);
    drawBeside(painter, place, places);
}

/// Where the chosen line is at the context.
void PlanCurves::drawPlan(QPainter& painter, const Place& place, LabelPlaces& places) const {
    const auto chosen = std::ranges::find_if(picture_.curves, &PlanCurve::chosen);
    if (chosen == picture_.curves.end() || chosen->points.empty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true), plain = Theme::instance().font(TypeRole::Table);
    const double x = std::floor(place.x.xOf(static_cast<double>(picture_.context)));
    const double gib = chosen->at(static_cast<double>(picture_.context));
    const double y = std::max(place.yOf(gib), place.top);
    drawDot(painter, {x + 0.5, y}, t.accent);
    const bool fits = gib <= picture_.device;
    const QString words = tr("this plan %1").arg(gibOf(gib));
    const QString spare = (fits ? tr("%1 to spare") : tr("%1 over")).arg(gibOf(std::abs(picture_.device - gib)));
    const double room = std::max(textWidth(words, strong), textWidth(spare, plain)) + 4;
    const double rightOf = x + 10, leftOf = x - 10 - room;
    const double under = std::clamp(y + 6, place.top, place.bottom - 36), above = std::max(place.top, y - 40);
    for (const QPointF corner :
         {QPointF(rightOf, under), QPointF(leftOf, under), QPointF(rightOf, above), QPointF(leftOf, above)}) {
        const QRectF box(corner - QPointF(2, 0), QSizeF(room + 2, 34));
        if (box.right() < place.plot().right() && box.left() > PlanAxis::kLeft && places.take(box)) {
            painter.fillRect(box, withAlpha(t.canvas, 0.8));
            drawText(painter, QRectF(corner, QSizeF(room, 17)), Qt::AlignVCenter, words, t.accent, strong);
            drawText(painter, QRectF(corner + QPointF(0, 16), QSizeF(room, 17)), Qt::AlignVCenter, spare,
                     fits ? t.good : t.bad, plain);
            return;
        }
    }
}

/// Where the line that changes are offered for is at the context, if it is inside the plot.
void PlanCurves::drawBeside(QPainter& painter, const Place& place, LabelPlaces& places) const {
    if (picture_.beside >= picture_.curves.size() || picture_.curves[picture_.beside].chosen ||
        picture_.curves[picture_.beside].points.empty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true), plain = Theme::instance().font(TypeRole::Table);
    const double gib = picture_.curves[picture_.beside].at(static_cast<double>(picture_.context));
    if (gib > place.valueTop) {
        return;
    }
    const QPointF at(std::floor(place.x.xOf(static_cast<double>(picture_.context))) + 0.5, place.yOf(gib));
    drawDot(painter, at, t.text2);
    const QString words = tr("set %1: %2").arg(picture_.beside + 1).arg(gibOf(gib));
    const QString over = tr("%1 GiB over").arg(gibOf(std::abs(gib - picture_.device)));
    const double first = textWidth(words, plain) + 8, second = textWidth(over, strong) + 2;
    for (const QPointF corner : {QPointF(at.x() - first - second - 10, at.y() - 32), QPointF(at.x() + 10, at.y() - 32),
                                 QPointF(at.x() - first - second - 10, at.y() + 6)}) {
        const QRectF box(corner, QSizeF(first + second, 16));
        if (box.left() > PlanAxis::kLeft && box.right() < place.plot().right() && places.take(box)) {
            painter.fillRect(box, withAlpha(t.canvas, 0.8));
            drawText(painter, box, Qt::AlignVCenter, words, t.text1, plain);
            drawText(painter, box.adjusted(first, 0, 0, 0), Qt::AlignVCenter, over, t.bad, strong);
            return;
        }
    }
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/plan_curves.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

namespace {

constexpr double kTopAir = 16, kAxisHeight = 20, kNumberBox = 15;
constexpr int kArrowTokens = 128, kPageTokens = 8192;

QPen penOf(std::size_t curve, bool chosen) {
    const ThemeTokens& t = themeTokens();
    if (chosen) {
        return {t.accent, 2};
    }
    QPen pen(t.text2, 1.5);
    const QList<qreal> patterns[] = {{1.5, 1.5}, {4, 2}, {6, 2, 1.5, 2}, {8, 3}};
    pen.setDashPattern(patterns[curve % std::size(patterns)]);
    return pen;
}

QString gibOf(double gib) {
    return QString::number(gib, 'f', 2);
}

/// "800K", "1.2M"
QString shortCount(double tokens) {
    if (tokens >= 1e6) {
        return QStringLiteral("%1M").arg(tokens / 1e6, 0, 'g', 3);
    }
    return tokens >= 1000 ? QStringLiteral("%1K").arg(tokens / 1e3, 0, 'g', 4)
                          : QString::number(static_cast<qint64>(tokens));
}

} // namespace

double PlanCurve::at(double tokens) const {
    if (points.empty()) {
        return 0;
    }
    const auto after = std::ranges::find_if(points, [&](const QPointF& point) { return point.x() >= tokens; });
    if (after == points.end()) {
        return points.back().y() + slope * (tokens - points.back().x());
    }
    if (after == points.begin()) {
        return points.front().y();
    }
    const QPointF a = *(after - 1), b = *after;
    return a.y() + (tokens - a.x()) / (b.x() - a.x()) * (b.y() - a.y());
}

void drawSetNumber(QPainter& painter, QPointF at, std::size_t set, bool chosen) {
    const ThemeTokens& t = themeTokens();
    const QRectF box(std::round(at.x()), std::round(at.y()), kNumberBox, kNumberBox);
    painter.fillRect(box, chosen ? t.accentFill : t.text2);
    drawText(painter, box, Qt::AlignCenter, QString::number(set + 1), chosen ? t.onAccent : t.canvas,
             Theme::instance().font(TypeRole::Axis, true));
}

/// Where values lie in the widget.
struct PlanCurves::Place {
    PlanAxis x;
    double top = kTopAir, bottom = 0, valueTop = 1;

    Place(const PlanPicture& picture, const QSizeF& size)
        : x{size.width(), picture.axisTop}, bottom(size.height() - kAxisHeight) {
        const std::vector<double> ticks = roundTicks(std::max(picture.device, 1e-6), 5);
        const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
        valueTop = (std::floor(picture.device / step) + 1) * step; // one step above the device
        valueTop = valueTop < picture.device * 1.05 ? valueTop + step : valueTop;
    }
    double yOf(double gib) const { return bottom - gib / valueTop * (bottom - top); }
    QRectF plot() const { return {PlanAxis::kLeft, top, x.width - PlanAxis::kLeft - PlanAxis::kRight, bottom - top}; }
};

PlanCurves::PlanCurves(QWidget* parent) : PicturePlot(tr("Peak memory over context"), parent) {
    setMouseTracking(true);
    setMinimumHeight(230);
}

void PlanCurves::setPicture(PlanPicture picture) {
    picture_ = std::move(picture);
    invalidate();
}

void PlanCurves::drawGrid(QPainter& painter, const Place& place) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QRectF plot = place.plot();
    for (const double value : roundTicks(place.valueTop, 6)) {
        const double y = place.yOf(value);
        hairline(painter, plot.left(), plot.right(), std::floor(y), value > 0 ? t.line0 : t.line1);
        const QString text = place.valueTop < 2 ? QString::number(value, 'g', 3) : QString::number(value);
        drawText(painter, QRectF(0, y - 8, PlanAxis::kLeft - 8, 16), Qt::AlignRight | Qt::AlignVCenter, text, t.text3,
                 font);
    }
    double taken = 0;
    for (const double tokens : roundTicks(static_cast<double>(place.x.top), 9)) {
        const double x = place.x.xOf(tokens);
        if (tokens > 0) {
            plumbline(painter, std::floor(x), plot.top(), plot.bottom(), t.line0);
        }
        const double width = textWidth(shortCount(tokens), font) + 2;
        const bool free = std::abs(x - place.x.xOf(static_cast<double>(picture_.context))) > 48; // beside the tag
        if (free && x - width / 2 > taken && x + width / 2 < plot.right() - 40) {
            drawText(painter, QRectF(x - width / 2, place.bottom + 3, width, 14), Qt::AlignCenter, shortCount(tokens),
                     t.text3, font);
            taken = x + width / 2 + 6;
        }
    }
    drawText(painter, QRectF(plot.right() - 60, place.bottom + 3, 60, 14), Qt::AlignRight | Qt::AlignVCenter,
             tr("tokens"), t.text3, font);
}

void PlanCurves::drawLine(QPainter& painter, const Place& place, std::size_t index) const {
    const PlanCurve& curve = picture_.curves[index];
    if (curve.points.empty()) {
        return;
    }
    QPolygonF line, upper, lower;
    const auto add = [&](double tokens, double gib) {
        line << QPointF(place.x.xOf(tokens), place.yOf(gib));
        upper << QPointF(place.x.xOf(tokens), place.yOf(gib * (1 + picture_.band)));
        lower.prepend(QPointF(place.x.xOf(tokens), place.yOf(gib * (1 - picture_.band))));
    };
    const auto top = static_cast<double>(place.x.top);
    add(0, curve.points.front().y());
    for (const QPointF& point : curve.points) {
        if (point.x() <= top) {
            add(point.x(), point.y());
        }
    }
    add(top, curve.at(top));
    if (curve.chosen && picture_.band > 0) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(withAlpha(themeTokens().accent, 0.13));
        painter.drawPolygon(upper + lower);
    }
    painter.setPen(penOf(index, curve.chosen));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(line);
}

void PlanCurves::drawLimits(QPainter& painter, const Place& place) const {
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    const double y = std::floor(place.yOf(picture_.device)) + 0.5;
    QPen pen(t.bad, 1);
    pen.setDashPattern({5, 3});
    painter.setPen(pen);
    painter.drawLine(QPointF(PlanAxis::kLeft, y), QPointF(place.plot().right(), y));
    const QString text = tr("device %1").arg(gibOf(picture_.device));
    drawText(painter, QRectF(place.plot().right() - 160, y + 2, 160, 16), Qt::AlignRight | Qt::AlignVCenter, text,
             t.bad, strong);
    for (const PlanCurve& curve : picture_.curves) {
        if (curve.longest <= 0) {
            continue;
        }
        const double x = place.x.xOf(static_cast<double>(curve.longest));
        const double at = place.yOf(std::min(curve.at(static_cast<double>(curve.longest)), picture_.device));
        QPen down(t.line2, 1);
        down.setDashPattern({2, 3});
        painter.setPen(down);
        painter.drawLine(QPointF(std::floor(x) + 0.5, at), QPointF(std::floor(x) + 0.5, place.bottom));
        painter.setPen(QPen(curve.chosen ? t.accent : t.text2, 1.5));
        painter.setBrush(t.canvas);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.drawEllipse(QPointF(x, at), 4.5, 4.5);
        painter.setRenderHint(QPainter::Antialiasing, false);
        const QString words = countText(curve.longest);
        const double width = textWidth(words, strong) + 2;
        const double left = std::max(PlanAxis::kLeft + 2, x - width - 7);
        drawText(painter, QRectF(left, at - 18, width, 16), Qt::AlignVCenter, words, curve.chosen ? t.accent : t.text1,
                 strong);
    }
}

void PlanCurves::drawName(QPainter& painter, const Place& place, std::size_t index) const {
    const PlanCurve& curve = picture_.curves[index];
    if (curve.points.empty()) {
        return;
    }
    // At a height of its own, or, where the line stays below it, at a place of its own.
    const double share = 0.76 - 0.1 * static_cast<double>(index);
    const double wanted = picture_.device * share;
    double low = 0, high = static_cast<double>(place.x.top) * 0.6;
    for (int i = 0; i < 40; ++i) {
        const double middle = (low + high) / 2;
        (curve.at(middle) < wanted ? low : high) = middle;
    }
    const QPointF at(place.x.xOf(low) + 8, std::min(place.yOf(curve.at(low)) + 2, place.bottom - 18));
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const double width = textWidth(curve.name, font) + 4;
    if (at.x() + 20 + width < place.plot().right()) {
        painter.fillRect(QRectF(at.x() - 2, at.y() - 1, width + 26, 18), withAlpha(t.canvas, 0.8));
        drawText(painter, QRectF(at.x() + 21, at.y() - 1, width, 17), Qt::AlignVCenter, curve.name,
                 curve.chosen ? t.accent : t.text1, font);
    }
    drawSetNumber(painter, at, index, curve.chosen);
}

void PlanCurves::drawContext(QPainter& painter, const Place& place) const {
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true), plain = Theme::instance().font(TypeRole::Table);
    const double x = std::floor(place.x.xOf(static_cast<double>(picture_.context)));
    if (picture_.context > place.x.top) {
        return;
    }
    plumbline(painter, x, place.top, place.bottom, t.text1);
    const QString tag = countText(picture_.context);
    const double width = textWidth(tag, strong) + 16;
    const double left = std::clamp(x - width / 2, PlanAxis::kLeft, place.plot().right() - width);
    painter.fillRect(QRectF(left, place.bottom + 1, width, 18), t.text1);
    drawText(painter, QRectF(left, place.bottom + 1, width, 18), Qt::AlignCenter, tag, t.canvas, strong);
    for (const PlanCurve& curve : picture_.curves) {
        const double gib = curve.at(static_cast<double>(picture_.context));
        if (!curve.chosen || curve.points.empty()) {
            continue;
        }
        const double y = std::max(place.yOf(gib), place.top);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(t.accent);
        painter.drawEllipse(QPointF(x + 0.5, y), 4, 4);
        painter.setRenderHint(QPainter::Antialiasing, false);
        const bool fits = gib <= picture_.device;
        const QString words = tr("this plan %1").arg(gibOf(gib));
        const QString spare = (fits ? tr("%1 to spare") : tr("%1 over")).arg(gibOf(std::abs(picture_.device - gib)));
        const double room = std::max(textWidth(words, strong), textWidth(spare, plain)) + 4;
        const double at = x + 10 + room < place.plot().right() ? x + 10 : x - 10 - room;
        const double down = std::clamp(y + 6, place.top, place.bottom - 36);
        painter.fillRect(QRectF(at - 2, down, room + 2, 34), withAlpha(t.canvas, 0.8));
        drawText(painter, QRectF(at, down, room, 17), Qt::AlignVCenter, words, t.accent, strong);
        drawText(painter, QRectF(at, down + 16, room, 17), Qt::AlignVCenter, spare, fits ? t.good : t.bad, plain);
    }
}

QImage PlanCurves::picture(const QSizeF& size, double dpr) const {
    QImage image = plotCanvas(size, dpr, themeTokens().canvas);
    QPainter painter(&image);
    if (picture_.curves.empty()) {
        return image;
    }
    const Place place(picture_, size);
    drawGrid(painter, place);
    painter.save();
    painter.setClipRect(place.plot());
    painter.setRenderHint(QPainter::Antialiasing);
    for (std::size_t i = 0; i < picture_.curves.size(); ++i) {
        drawLine(painter, place, i);
    }
    painter.restore();
    drawLimits(painter, place);
    for (std::size_t i = 0; i < picture_.curves.size(); ++i) {
        drawName(painter, place, i);
    }
    drawContext(painter, place);
    return image;
}

void PlanCurves::paintOver(QPainter& painter) {
    if (hover_ && !picture_.curves.empty()) {
        const Place place(picture_, size());
        plumbline(painter, std::floor(place.x.xOf(*hover_)), place.top, place.bottom, themeTokens().line2);
    }
}

QString PlanCurves::wordsAt(double tokens) const {
    QStringList words;
    for (std::size_t i = 0; i < picture_.curves.size(); ++i) {
        if (const double gib = picture_.curves[i].at(tokens); gib > 0) {
            words << tr("set %1 %2").arg(i + 1).arg(gibOf(gib));
        }
    }
    return tr("Context %1: %2 GiB").arg(countText(std::llround(tokens)), words.join(QStringLiteral(", ")));
}

QString PlanCurves::spoken() const {
    return picture_.curves.empty() ? QString() : wordsAt(hover_.value_or(static_cast<double>(picture_.context)));
}

void PlanCurves::mouseMoveEvent(QMouseEvent* event) {
    const PlanAxis axis{static_cast<double>(width()), picture_.axisTop};
    const double tokens = axis.tokensAt(event->position().x());
    hover_ = tokens >= 0 && tokens <= static_cast<double>(picture_.axisTop) ? std::optional(tokens) : std::nullopt;
    announce();
    update();
}

void PlanCurves::mousePressEvent(QMouseEvent* event) {
    mouseMoveEvent(event);
    if (hover_ && event->button() == Qt::LeftButton) {
        emit contextPicked(std::max<qint64>(std::llround(*hover_ / kArrowTokens), 1) * kArrowTokens);
    }
}

void PlanCurves::leaveEvent(QEvent*) {
    hover_.reset();
    emit readoutChanged({});
    update();
}

void PlanCurves::keyPressEvent(QKeyEvent* event) {
    const int step = event->key() == Qt::Key_Left       ? -kArrowTokens
                     : event->key() == Qt::Key_Right    ? kArrowTokens
                     : event->key() == Qt::Key_PageUp   ? kPageTokens
                     : event->key() == Qt::Key_PageDown ? -kPageTokens
                                                        : 0;
    if (step == 0 || picture_.curves.empty()) {
        PicturePlot::keyPressEvent(event);
        return;
    }
    emit contextPicked(std::clamp<qint64>(picture_.context + step, kArrowTokens, picture_.axisTop));
}

} // namespace vitrine::ui

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
#include "ui/views/planner/plan_curves_place.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/plot_frame.h"
#include "ui/widgets/plots/vector_picture.h"

namespace vitrine::ui {

namespace {

constexpr double kNumberBox = 15;
constexpr int kArrowTokens = 128, kPageTokens = 8192;

QPen penOf(std::size_t curve, bool chosen) {
    const ThemeTokens& t = themeTokens();
    if (chosen) {
        return {t.accent, 2};
    }
    QPen pen(t.text2, 1.5);
    const QList<qreal> patterns[] = {{1.35, 1.35}, {4, 2}, {6, 2, 1.5, 2}, {8, 3}};
    pen.setDashPattern(patterns[curve % std::size(patterns)]);
    return pen;
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

void PlanCurves::paintPlot(QPainter& painter, const QSizeF& size) const {
    const Place place(picture_, size);
    LabelPlaces places;
    drawGrid(painter, place);
    painter.save();
    painter.setClipRect(place.plot());
    painter.setRenderHint(QPainter::Antialiasing);
    for (std::size_t i = 0; i < picture_.curves.size(); ++i) {
        drawLine(painter, place, i);
    }
    painter.restore();
    drawLimits(painter, place, places);
    drawContext(painter, place, places);
    for (std::size_t i = 0; i < picture_.curves.size(); ++i) {
        drawName(painter, place, i, places);
    }
}

QImage PlanCurves::picture(const QSizeF& size, double dpr) const {
    QImage image = plotCanvas(size, dpr, themeTokens().canvas);
    if (!picture_.curves.empty()) {
        QPainter painter(&image);
        paintPlot(painter, size);
    }
    return image;
}

QByteArray PlanCurves::svg() const {
    return vectorPicture(size(), title(), spoken(), [this](QPainter& painter) {
        painter.fillRect(rect(), themeTokens().canvas);
        if (!picture_.curves.empty()) {
            paintPlot(painter, size());
        }
    });
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
            words << tr("set %1 %2").arg(i + 1).arg(QString::number(gib, 'f', 2));
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

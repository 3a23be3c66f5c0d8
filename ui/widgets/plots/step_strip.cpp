// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/step_strip.h"

#include <QEnterEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kStripGutter = 48, kStripRight = 24, kTickRow = 17, kStripAir = 4;
constexpr double kHatchedFrom = 3; ///< px of a step below which a hatch is noise

} // namespace

struct StepStrip::Frame {
    QRectF plot;  ///< of the steps
    QRectF bands; ///< empty without bands
    double begin = 0, scale = 1, top = 1;

    double x(double value) const { return plot.left() + (value - begin) * scale; }
    double y(double value) const { return plot.bottom() - std::clamp(value / top, 0.0, 1.0) * plot.height(); }
};

StepStrip::StepStrip(const QString& title, QWidget* parent, std::function<std::pair<double, double>()> edges)
    : PicturePlot(title, parent), edges_(std::move(edges)) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void StepStrip::setData(StepStripData data) {
    data_ = std::move(data);
    setAccessibleDescription(data_.text);
    invalidate();
}

void StepStrip::enterEvent(QEnterEvent* event) {
    PicturePlot::enterEvent(event);
    emit readoutChanged(data_.text);
}

void StepStrip::leaveEvent(QEvent* event) {
    PicturePlot::leaveEvent(event);
    emit readoutChanged({});
}

StepStrip::Frame StepStrip::frameOf(const QSizeF& size) const {
    const auto [left, right] = edges_ ? edges_() : std::pair(kStripGutter, size.width() - kStripRight);
    Frame frame;
    const double above = data_.bands.empty() ? 0 : kBandRow;
    const double below = data_.xTicks.empty() ? 1 : kTickRow;
    const double width = std::max(10.0, right - left);
    frame.bands = QRectF(left, 0, width, above);
    frame.plot = QRectF(left, above + (data_.steps.empty() ? 0 : kStripAir), width, 0);
    frame.plot.setBottom(std::max(frame.plot.top(), size.height() - below));
    frame.begin = data_.begin;
    frame.scale = width / std::max(1e-12, data_.end - data_.begin);
    frame.top = std::max(1e-12, data_.top);
    return frame;
}

void StepStrip::paintBands(QPainter& painter, const Frame& frame) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    for (const StepStripData::Band& band : data_.bands) {
        const double from = std::round(frame.x(band.from)), to = std::max(from + 1, std::round(frame.x(band.to)) - 1);
        const QRectF box(from, frame.bands.top(), to - from, kBandRow - 1);
        painter.fillRect(box, band.strong ? t.pressed : t.hover);
        if (box.width() > 24) {
            drawText(painter, box.adjusted(5, 0, -3, 0), Qt::AlignVCenter, band.text, t.text1, font);
        }
    }
}

void StepStrip::paintSteps(QPainter& painter, const Frame& frame, double dpr) const {
    const ThemeTokens& t = themeTokens();
    const double period = data_.period * frame.scale;
    for (std::size_t i = 0; i < data_.steps.size(); ++i) {
        const double from = frame.x(data_.steps[i].x());
        const double to = frame.x(i + 1 < data_.steps.size() ? data_.steps[i + 1].x() : data_.stop);
        const QRectF box(from, frame.y(data_.steps[i].y()), std::max(to - from, 1 / dpr),
                         frame.plot.bottom() - frame.y(data_.steps[i].y()));
        const bool wide = (period > 0 ? period : to - from) >= kHatchedFrom;
        if (!data_.style) {
            painter.fillRect(box, wide ? freeHatch(t, 6, dpr) : QBrush(withAlpha(t.line2, 0.6)));
            hairline(painter, box.left(), box.right(), std::floor(box.top()), t.text2);
        } else {
            CategoryStyle style = data_.style(t);
            style.hatch = wide ? style.hatch : Hatch::None;
            fillCategory(painter, box, style, dpr);
        }
    }
}

void StepStrip::paintTicks(QPainter& painter, const Frame& frame) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    for (const auto& [value, text] : data_.yTicks) {
        const double y = std::floor(frame.y(value));
        hairline(painter, frame.plot.left(), frame.plot.right(), y, t.line0);
        const double top = std::clamp(y - 8, frame.plot.top() - 4, std::max(0.0, frame.plot.bottom() - 12));
        drawText(painter, QRectF(0, top, frame.plot.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter, text, t.text3,
                 font);
    }
    hairline(painter, frame.plot.left(), frame.plot.right(), std::floor(frame.plot.bottom()), t.line1);
    for (const auto& [value, text] : data_.xTicks) {
        const double x = std::floor(frame.x(value)), width = textWidth(text, font) + 2;
        if (x > frame.plot.right() + 1) {
            break;
        }
        plumbline(painter, x, frame.plot.bottom(), frame.plot.bottom() + 3, t.line1);
        drawText(painter,
                 QRectF(std::min(x - width / 2, frame.plot.right() - width / 2), frame.plot.bottom() + 2, width, 14),
                 Qt::AlignCenter, text, t.text3, font);
    }
}

QImage StepStrip::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const Frame frame = frameOf(size);
    paintBands(painter, frame);
    if (data_.steps.empty()) {
        return image;
    }
    paintTicks(painter, frame);
    paintSteps(painter, frame, dpr);
    if (data_.limit) {
        const double y = std::floor(frame.y(data_.limit->value)) + 0.5;
        QPen pen(t.bad, 1.2);
        pen.setDashPattern({5, 3});
        painter.setPen(pen);
        painter.drawLine(QPointF(frame.plot.left(), y), QPointF(frame.plot.right(), y));
        drawText(painter, QRectF(frame.plot.left() + 4, y + 1, frame.plot.width() - 8, 14), Qt::AlignVCenter,
                 data_.limit->text, t.bad, Theme::instance().font(TypeRole::Axis));
    }
    return image;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/scroll_plot.h"

#include <QPainter>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kBarThickness = static_cast<int>(ScrollPlot::kBarRoom);
constexpr int kWheelStep = 48; ///< of one notch

void setReach(QScrollBar* bar, double content, double shown) {
    // Content that is wider than a bar can count ends there.
    const double rest = std::clamp(std::ceil(content - shown), 0.0, 1e9);
    bar->setRange(0, static_cast<int>(rest));
    bar->setPageStep(std::max(1, static_cast<int>(shown)));
    bar->setSingleStep(kWheelStep);
    bar->setVisible(rest > 0);
}

} // namespace

ScrollPlot::ScrollPlot(const QString& title, QWidget* parent)
    : PlotWidget(title, parent), across_(new QScrollBar(Qt::Horizontal, this)),
      down_(new QScrollBar(Qt::Vertical, this)) {
    for (QScrollBar* bar : {across_, down_}) {
        bar->setFocusPolicy(Qt::NoFocus);
        bar->hide();
        connect(bar, &QScrollBar::valueChanged, this, qOverload<>(&QWidget::update));
    }
    connect(&Theme::instance(), &Theme::changed, this, &ScrollPlot::contentChanged);
}

QPointF ScrollPlot::offset() const {
    return {static_cast<double>(across_->value()), static_cast<double>(down_->value())};
}

void ScrollPlot::scrollTo(QPointF offset) {
    across_->setValue(static_cast<int>(std::lround(offset.x())));
    down_->setValue(static_cast<int>(std::lround(offset.y())));
}

QPointF ScrollPlot::toContent(QPointF position) const {
    return position - movingArea(size()).topLeft() + offset();
}

void ScrollPlot::contentChanged() {
    const QRectF area = movingArea(size());
    const QSizeF content = contentSize(size());
    setReach(across_, content.width(), area.width());
    setReach(down_, content.height(), area.height());
    const QRect place = area.toRect();
    across_->setGeometry(place.left(), height() - kBarThickness, place.width(), kBarThickness);
    down_->setGeometry(place.right() + 1, place.top(), kBarThickness, place.height());
    update();
}

void ScrollPlot::reveal(const QRectF& content) {
    const QSizeF shown = movingArea(size()).size();
    const auto moved = [](double at, double from, double to, double room) {
        return from < at ? from : to > at + room ? to - room : at;
    };
    const QPointF now = offset();
    scrollTo({moved(now.x(), content.left(), content.right(), shown.width()),
              moved(now.y(), content.top(), content.bottom(), shown.height())});
}

QImage ScrollPlot::picture(const QSizeF& size, double dpr) const {
    QImage image = plotCanvas(size, dpr, themeTokens().canvas);
    QPainter painter(&image);
    paintPlot(painter, size);
    return image;
}

void ScrollPlot::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), themeTokens().canvas);
    paintPlot(painter, size());
    paintFocus(painter);
}

void ScrollPlot::resizeEvent(QResizeEvent* event) {
    PlotWidget::resizeEvent(event);
    contentChanged();
}

void ScrollPlot::wheelEvent(QWheelEvent* event) {
    const QPoint turned = event->pixelDelta().isNull() ? event->angleDelta() * kWheelStep / 120 : event->pixelDelta();
    const bool sideways = event->modifiers().testFlag(Qt::ShiftModifier) || down_->maximum() == 0;
    const QPoint by = sideways && turned.x() == 0 ? QPoint(turned.y(), 0) : turned;
    const QPointF before = offset();
    scrollTo(before - by);
    event->setAccepted(offset() != before); // else the page around it scrolls
}

} // namespace vitrine::ui

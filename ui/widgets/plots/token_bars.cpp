// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/token_bars.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/common/plot_series.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kBarGutter = 46, kBarEdge = 12, kBarFoot = 16, kBarHead = 2;

} // namespace

TokenBars::TokenBars(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setMouseTracking(true);
}

void TokenBars::setBars(std::vector<double> values, const QString& above, const QString& below) {
    values_ = std::move(values);
    above_ = above;
    below_ = below;
    double most = 0;
    for (const double value : values_) {
        most = std::isfinite(value) ? std::max(most, std::abs(value)) : most;
    }
    most_ = most > 0 ? plotScale(0, most, 2).high : 1;
    forgetCurrentItem();
    invalidate();
}

void TokenBars::setLow(bool low) {
    if (low_ != low) {
        low_ = low;
        updateGeometry();
        invalidate();
    }
}

QRectF TokenBars::plot(const QSizeF& size) const {
    return {kBarGutter, kBarHead, std::max(1.0, size.width() - kBarGutter - kBarEdge),
            std::max(1.0, size.height() - kBarHead - (low_ ? kBarHead : kBarFoot))};
}

QRectF TokenBars::barOf(int bar, const QRectF& plot) const {
    const double each = plot.width() / std::max(1, barCount());
    const double value = values_[static_cast<std::size_t>(bar)];
    const double height = std::isfinite(value) ? std::abs(value) / most_ * plot.height() / 2 : 0;
    const double left = std::floor(plot.left() + each * bar);
    const double width = std::max(1.0, std::floor(each) - (each >= 3 ? 1 : 0));
    const double zero = std::floor(plot.center().y());
    return value < 0 ? QRectF(left, zero, width, height) : QRectF(left, zero - height, width, height);
}

QImage TokenBars::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.panel);
    QPainter painter(&image);
    const QRectF area = plot(size);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    painter.fillRect(area, t.canvas);
    const QString end = QString::number(most_, 'g', 3);
    const double zero = std::floor(area.center().y());
    for (const auto& [y, words] :
         {std::pair(area.top(), QStringLiteral("+") + end), std::pair(zero, QStringLiteral("0")),
          std::pair(area.bottom() - 1, QStringLiteral("−") + end)}) {
        hairline(painter, area.left(), area.right(), y, y == zero ? t.line1 : t.line0);
        if (low_ && y == zero) {
            continue; // its number would touch the others
        }
        drawText(painter, QRectF(0, std::clamp(y - 7, 0.0, area.bottom() - 13), kBarGutter - 6, 14),
                 Qt::AlignRight | Qt::AlignVCenter, words, t.text3, font);
    }
    for (int bar = 0; bar < barCount(); ++bar) {
        const QRectF rect = barOf(bar, area);
        if (rect.height() <= 0) {
            continue;
        }
        if (values_[static_cast<std::size_t>(bar)] > 0) {
            painter.fillRect(rect, t.compareA);
        } else if (rect.width() < 3) {
            painter.fillRect(rect, t.compareB);
        } else {
            painter.setPen(QPen(t.compareB, 1));
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
        }
    }
    drawText(painter, QRectF(area.left() + 4, area.top(), area.width() - 8, 14), Qt::AlignVCenter, above_, t.text3,
             font);
    drawText(painter, QRectF(area.left() + 4, area.bottom() - 15, area.width() - 8, 14),
             Qt::AlignVCenter | Qt::AlignRight, below_, t.text3, font);
    if (barCount() > 0 && !low_) {
        const QRectF foot(area.left(), area.bottom() + 1, area.width(), 14);
        drawText(painter, foot, Qt::AlignVCenter, tr("token 1"), t.text3, font);
        drawText(painter, foot, Qt::AlignVCenter | Qt::AlignRight, countText(barCount()), t.text3, font);
    }
    return image;
}

int TokenBars::itemAt(QPointF position) const {
    const QRectF area = plot(size());
    if (!area.contains(position) || barCount() == 0) {
        return -1;
    }
    return std::clamp(static_cast<int>((position.x() - area.left()) / area.width() * barCount()), 0, barCount() - 1);
}

QString TokenBars::itemText(int item) const {
    const double value = values_[static_cast<std::size_t>(item)];
    return tr("Token %1: %2").arg(item + 1).arg(std::isfinite(value) ? QString::number(value, 'g', 3) : unknownText());
}

QRectF TokenBars::itemFrame(int item) const {
    return barOf(item, plot(size())).adjusted(-1.5, -1.5, 1.5, 1.5);
}

int TokenBars::itemBeside(int item, int key) const {
    if (key != Qt::Key_Left && key != Qt::Key_Right) {
        return item;
    }
    return std::clamp(item + (key == Qt::Key_Right ? 1 : -1), 0, std::max(0, barCount() - 1));
}

void TokenBars::mouseMoveEvent(QMouseEvent* event) {
    ItemPlot::mouseMoveEvent(event);
    emit barShown(currentItem());
}

void TokenBars::leaveEvent(QEvent* event) {
    ItemPlot::leaveEvent(event);
    emit barShown(-1);
}

void TokenBars::keyPressEvent(QKeyEvent* event) {
    ItemPlot::keyPressEvent(event);
    emit barShown(currentItem());
}

} // namespace vitrine::ui

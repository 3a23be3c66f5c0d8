// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/pack_strip.h"

#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/pack_paint.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

constexpr double kRulerHeight = 20, kBandHeight = 16, kStripTop = kRulerHeight + 18, kStripHeight = 34;
constexpr double kLeastRow = 3; ///< px; narrower rows join

} // namespace

PackStrip::PackStrip(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setFixedHeight(sizeHint().height());
    setMouseTracking(true);
}

QSize PackStrip::sizeHint() const {
    return {400, static_cast<int>(kStripTop + kStripHeight) + 4};
}

void PackStrip::setRows(std::vector<PackedRow> rows, std::int64_t length) {
    rows_ = std::move(rows);
    length_ = std::max<std::int64_t>(1, length);
    chosen_ = -1;
    marked_ = -1;
    forgetCurrentItem();
    invalidate();
}

void PackStrip::setChosen(int row) {
    chosen_ = row;
    update();
}

void PackStrip::setMarked(std::int64_t position) {
    if (position != marked_) {
        marked_ = position;
        update();
    }
}

double PackStrip::xOf(std::int64_t position, double width) const {
    return packX(position, length_, width);
}

void PackStrip::paintRuler(QPainter& painter, double width) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    drawText(painter, QRectF(11, 0, 49, 16), Qt::AlignVCenter, tr("Position"), t.text3, font);
    const std::int64_t step = rulerStep(length_);
    const double end = xOf(length_, width);
    for (std::int64_t at = 0; at <= length_; at += step) {
        const double x = xOf(at, width);
        plumbline(painter, std::min(x, end - 1), 14, 19, t.line2);
        const bool last = at == length_, roomy = end - x > 60;
        if (last || roomy) {
            const QRectF box = at == 0 ? QRectF(x, 0, 60, 16)
                               : last  ? QRectF(x - 60, 0, 60, 16)
                                       : QRectF(x - 30, 0, 60, 16);
            drawText(painter, box,
                     (at == 0 ? Qt::AlignLeft
                      : last  ? Qt::AlignRight
                              : Qt::AlignHCenter) |
                         Qt::AlignVCenter,
                     countText(at), t.text2, font);
        }
    }
    if (length_ % step != 0) {
        drawText(painter, QRectF(end - 60, 0, 60, 16), Qt::AlignRight | Qt::AlignVCenter, countText(length_), t.text2,
                 font);
    }
}

void PackStrip::paintRows(QPainter& painter, double width, double dpr) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    std::int64_t used = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const PackedRow& row = rows_[i];
        const double a = std::round(xOf(row.span.begin, width)), b = std::round(xOf(row.span.end, width));
        used = std::max(used, row.span.end);
        if (b - a < kLeastRow) {
            painter.fillRect(QRectF(a, kRulerHeight, std::max(1.0, b - a), kBandHeight - 1), freeHatch(t, 4, dpr));
        } else {
            painter.fillRect(QRectF(a, kRulerHeight, b - a - 1, kBandHeight - 1), i % 2 == 1 ? t.hover : t.pressed);
            if (b - a > textWidth(row.name, font) + 8) {
                drawText(painter, QRectF(a, kRulerHeight, b - a - 1, kBandHeight), Qt::AlignCenter, row.name,
                         row.cut ? t.warn : t.text1, font);
            }
        }
        paintUntrained(painter, QRectF(a, kStripTop, std::max(1.0, b - a - 1), kStripHeight), i % 2 == 1, dpr);
        for (const StripSpan& span : row.trained) {
            const double x = std::round(xOf(span.begin, width));
            const double x2 = std::max(x + 1, std::min(b - 1, std::round(xOf(span.end, width))));
            painter.fillRect(QRectF(x, kStripTop, x2 - x, kStripHeight), trainedColor(i % 2 == 1));
        }
    }
    const double a = std::round(xOf(used, width)), end = xOf(length_, width);
    if (end - a >= 2) {
        dashedFrame(painter, QRectF(a + 0.5, kStripTop + 0.5, end - a - 1, kStripHeight - 1));
    }
}

QImage PackStrip::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    if (rows_.empty()) {
        return image;
    }
    paintRuler(painter, size.width());
    drawText(painter, QRectF(11, kRulerHeight, 49, 16), Qt::AlignVCenter, tr("Row"), t.text3, font);
    drawText(painter, QRectF(11, kStripTop, 49, kStripHeight), Qt::AlignVCenter, tr("Tokens"), t.text3, font);
    paintRows(painter, size.width(), dpr);
    return image;
}

void PackStrip::paintOver(QPainter& painter) {
    const ThemeTokens& t = themeTokens();
    if (marked_ >= 0) {
        plumbline(painter, xOf(marked_, width()), kStripTop, kStripTop + kStripHeight, t.text1);
    }
    if (chosen_ >= 0 && chosen_ < itemCount()) {
        const PackedRow& row = rows_[static_cast<std::size_t>(chosen_)];
        const double a = std::round(xOf(row.span.begin, width())), b = std::round(xOf(row.span.end, width()));
        painter.setPen(QPen(t.text1, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(a - 1, kRulerHeight - 1, b - a + 1, kStripTop + kStripHeight - kRulerHeight + 2));
        const QFont font = Theme::instance().font(TypeRole::Axis, true);
        const double wide = textWidth(row.name, font) + 8;
        const double left = std::clamp((a + b - wide) / 2, kGutter, std::max(kGutter, width() - 12 - wide));
        painter.fillRect(QRectF(left, 1, wide, 15), t.text1);
        drawText(painter, QRectF(left, 1, wide, 15), Qt::AlignCenter, row.name, t.canvas, font);
    }
    ItemPlot::paintOver(painter);
}

int PackStrip::itemAt(QPointF position) const {
    if (position.y() < kRulerHeight || rows_.empty()) {
        return -1;
    }
    const std::int64_t at = packPosition(position.x(), length_, width());
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [at](const PackedRow& row) { return at >= row.span.begin && at < row.span.end; });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

QString PackStrip::itemText(int item) const {
    const PackedRow& row = rows_[static_cast<std::size_t>(item)];
    return tr("Row %1: positions %2 to %3%4")
        .arg(row.name, countText(row.span.begin), countText(row.span.end - 1), row.cut ? tr(", cut") : QString());
}

QRectF PackStrip::itemFrame(int item) const {
    const PackedRow& row = rows_[static_cast<std::size_t>(item)];
    const double a = xOf(row.span.begin, width()), b = xOf(row.span.end, width());
    return {std::round(a) + 0.5, kRulerHeight + 0.5, std::max(1.0, std::round(b - a) - 1),
            kStripTop + kStripHeight - kRulerHeight};
}

int PackStrip::itemBeside(int item, int key) const {
    return packBeside(item, key, itemCount());
}

void PackStrip::mouseMoveEvent(QMouseEvent* event) {
    ItemPlot::mouseMoveEvent(event);
    const double x = event->position().x();
    const std::int64_t at = packPosition(x, length_, width());
    emit positionHovered(x >= kGutter && event->position().y() >= kRulerHeight && itemAt(event->position()) >= 0 ? at
                                                                                                                 : -1);
}

void PackStrip::leaveEvent(QEvent* event) {
    ItemPlot::leaveEvent(event);
    emit positionHovered(-1);
}

} // namespace vitrine::ui

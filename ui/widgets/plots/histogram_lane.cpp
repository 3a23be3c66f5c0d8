// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/histogram_lane.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <vector>

#include "ui/models/common/format.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kHistogramLeft = 59, kHistogramRight = 17, kHistogramTop = 31, kHistogramAxis = 18;
constexpr double kCountWidth = 2;
constexpr double kLeastDecades = 2;

double logCount(std::int64_t count) {
    return count < 1 ? -1 : std::log10(static_cast<double>(count));
}

} // namespace

struct HistogramLane::Bars {
    std::vector<std::int64_t> before, after;
    std::size_t each =
        1; ///< bins in a bar; the same in all, else neighbours could not be compared. The last has the rest
    std::size_t bins = 1;
    std::size_t size() const { return after.size(); }
    /// Where a bar begins, as a part of the axis.
    double begin(std::size_t bar) const {
        return std::min(1.0, static_cast<double>(bar * each) / static_cast<double>(bins));
    }
};

HistogramLane::HistogramLane(const QString& title, QWidget* parent) : ItemPlot(title, parent) {}

void HistogramLane::setHistogram(HistogramPtr histogram, const QString& a, const QString& b) {
    histogram_ = std::move(histogram);
    a_ = a;
    b_ = b;
    forgetCurrentItem();
    invalidate();
}

QRectF HistogramLane::plotOf(const QSizeF& size) {
    return {kHistogramLeft, kHistogramTop, std::max(2.0, size.width() - kHistogramLeft - kHistogramRight),
            std::max(2.0, size.height() - kHistogramTop - kHistogramAxis)};
}

HistogramLane::Bars HistogramLane::bars(const QRectF& plot) const {
    Bars bars;
    if (!histogram_) {
        return bars;
    }
    const std::size_t bins = std::min(histogram_->before.size(), histogram_->after.size());
    const auto room = static_cast<std::size_t>(std::max(1.0, plot.width() / kCountWidth));
    bars.bins = std::max<std::size_t>(1, bins);
    bars.each = std::max<std::size_t>(1, (bins + room - 1) / room);
    for (std::size_t at = 0; at < bins; at += bars.each) {
        std::int64_t before = 0, after = 0;
        for (std::size_t i = at; i < std::min(bins, at + bars.each); ++i) {
            before += histogram_->before[i];
            after += histogram_->after[i];
        }
        bars.before.push_back(before);
        bars.after.push_back(after);
    }
    return bars;
}

void HistogramLane::paintAxes(QPainter& painter, const QRectF& plot, double decades) const {
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    QFont power = axis;
    power.setPixelSize(std::max(8, power.pixelSize() - 2));
    const int each = decades > 4 ? 2 : 1;
    for (int e = 0; e <= static_cast<int>(decades); e += each) {
        const double y = plot.bottom() - e / decades * plot.height();
        hairline(painter, plot.left(), plot.right(), y, e == 0 ? t.line1 : t.line0);
        drawText(painter, QRectF(plot.left() - 50, y - 8, 33, 14), Qt::AlignRight | Qt::AlignVCenter,
                 QStringLiteral("10"), t.text3, axis);
        drawText(painter, QRectF(plot.left() - 16, y - 12, 16, 12), Qt::AlignLeft | Qt::AlignVCenter,
                 QString::number(e), t.text3, power);
    }
    const QRectF below(plot.left() - 59, plot.bottom() + 2, 51, 14);
    drawText(painter, below, Qt::AlignRight | Qt::AlignVCenter, tr("weight"), t.text3, axis);
    if (histogram_ && histogram_->range > 0) {
        const double range = histogram_->range;
        const NumberTicks ticks = numberTicks(-range, range, plot.width() < 160 ? 3 : 4);
        for (const double value : ticks.values) {
            const double x = plot.left() + (value + range) / (2 * range) * plot.width();
            drawText(painter, QRectF(x - 30, below.top(), 60, 14), Qt::AlignCenter, decimalText(value, ticks.decimals),
                     t.text3, axis);
        }
    }
}

void HistogramLane::paintCounts(QPainter& painter, const QRectF& plot, const Bars& bars, double decades) const {
    const ThemeTokens& t = themeTokens();
    const auto y = [&](std::int64_t count) {
        return plot.bottom() - std::max(0.0, logCount(count)) / decades * plot.height();
    };
    QPainterPath outline(QPointF(plot.left(), plot.bottom())), dashes;
    bool drawing = false;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const double left = plot.left() + bars.begin(i) * plot.width();
        const double wide = plot.left() + bars.begin(i + 1) * plot.width() - left;
        const double top = bars.after[i] > 0 ? y(bars.after[i]) : plot.bottom();
        painter.fillRect(QRectF(left, top, wide, plot.bottom() - top), withAlpha(t.compareA, 0.45));
        outline.lineTo(left, top);
        outline.lineTo(left + wide, top);
        const QPointF middle(left + wide / 2, y(bars.before[i]));
        if (bars.before[i] > 0) {
            drawing ? dashes.lineTo(middle) : dashes.moveTo(middle);
        }
        drawing = bars.before[i] > 0;
    }
    painter.setBrush(Qt::NoBrush);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(t.compareA, 1));
    painter.drawPath(outline);
    QPen dashed(t.compareB, 1.5);
    dashed.setDashPattern({5, 3});
    painter.setPen(dashed);
    painter.drawPath(dashes);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

QImage HistogramLane::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont table = Theme::instance().font(TypeRole::Table), strong = Theme::instance().font(TypeRole::Axis, true);
    const QRectF plot = plotOf(size);
    const Bars shown = bars(plot);
    double decades = kLeastDecades;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < shown.size(); ++i) {
        decades = std::max(decades, std::ceil(logCount(std::max(shown.before[i], shown.after[i]))));
        total += shown.after[i];
    }
    const double words = drawText(painter, QRectF(11, 2, size.width() - 22, 18), Qt::AlignLeft | Qt::AlignVCenter,
                                  tr("Weights by value, count, log scale"), t.text1, table);
    paintAxes(painter, plot, decades);
    if (shown.size() == 0) {
        return image;
    }
    if (const QString outside = tr("%1 outside").arg(countText(histogram_->outsideBefore));
        words + textWidth(outside, Theme::instance().font(TypeRole::Axis)) + 30 < size.width()) {
        drawText(painter, QRectF(0, 2, plot.right(), 18), Qt::AlignRight | Qt::AlignVCenter, outside, t.text2,
                 Theme::instance().font(TypeRole::Axis));
    }
    paintCounts(painter, plot, shown, decades);
    const double zero = static_cast<double>(histogram_->after[histogram_->after.size() / 2]);
    const QString atZero =
        tr("A at 0: %1").arg(shareText(zero / std::max(1.0, static_cast<double>(total + histogram_->outsideAfter))));
    drawText(painter, QRectF(plot.center().x() + 8, plot.top() - 5, plot.width() / 2 + 8, 14),
             Qt::AlignLeft | Qt::AlignVCenter, atZero, t.compareA, strong);
    const double middle = plot.top() + plot.height() * 0.34;
    drawText(painter, QRectF(plot.left(), middle - 7, plot.width() * 0.22, 14), Qt::AlignRight | Qt::AlignVCenter, b_,
             t.compareB, strong);
    drawText(painter, QRectF(plot.left() + plot.width() * 0.71, middle - 7, plot.width() * 0.29 + 12, 14),
             Qt::AlignLeft | Qt::AlignVCenter, a_, t.compareA, strong);
    return image;
}

int HistogramLane::itemCount() const {
    return static_cast<int>(bars(plotOf(size())).size());
}

int HistogramLane::itemAt(QPointF position) const {
    const QRectF plot = plotOf(size());
    const int count = itemCount();
    if (count == 0 || position.x() < plot.left() || position.x() >= plot.right()) {
        return -1;
    }
    const Bars shown = bars(plot);
    const double bin = (position.x() - plot.left()) / plot.width() * static_cast<double>(shown.bins);
    return std::min(count - 1, static_cast<int>(bin / static_cast<double>(shown.each)));
}

int HistogramLane::itemBeside(int item, int key) const {
    if (item < 0) {
        const Bars shown = bars(plotOf(size()));
        return static_cast<int>(shown.bins / 2 / shown.each); // the bar that has the values at 0
    }
    const int count = itemCount();
    const int by = key == Qt::Key_Right ? 1 : key == Qt::Key_Left ? -1 : 0;
    return std::clamp(item + by, 0, count - 1);
}

QString HistogramLane::itemText(int item) const {
    const Bars shown = bars(plotOf(size()));
    const auto at = static_cast<std::size_t>(item);
    const double width = 2.0 * histogram_->range;
    const double from = -histogram_->range + width * shown.begin(at),
                 to = -histogram_->range + width * shown.begin(at + 1);
    return tr("%1 to %2: A %3, B %4 weights")
        .arg(decimalText(from, 5), decimalText(to, 5), countText(shown.after[at]), countText(shown.before[at]));
}

QRectF HistogramLane::itemFrame(int item) const {
    const QRectF plot = plotOf(size());
    const Bars shown = bars(plot);
    const auto at = static_cast<std::size_t>(item);
    const double left = plot.left() + shown.begin(at) * plot.width();
    const double wide = plot.left() + shown.begin(at + 1) * plot.width() - left;
    return {std::floor(left) + 0.5, plot.top() + 0.5, std::max(1.0, wide), plot.height()};
}

QString HistogramLane::spoken() const {
    if (!histogram_ || currentItem() >= 0) {
        return ItemPlot::spoken();
    }
    return tr("Weights from %1 to %2, %3 outside")
        .arg(decimalText(-histogram_->range, 4), decimalText(histogram_->range, 4),
             countText(histogram_->outsideBefore));
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/layer_plot.h"

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

namespace {

constexpr double kLayerGutter = 76, kLayerRight = 96, kLayerTop = 12, kLayerBottom = 46;
constexpr double kSmallestRow = 5, kLargestRow = 30, kLabelRow = 13;
constexpr int kTicks = 6;

struct Unit {
    double bytes;
    QString name;
};

Unit unitOf(double bytes) {
    for (const auto& [size, name] : {std::pair{1ULL << 30, "GiB"}, {1ULL << 20, "MiB"}, {1ULL << 10, "KiB"}}) {
        if (bytes >= static_cast<double>(size)) {
            return {static_cast<double>(size), QString::fromLatin1(name)};
        }
    }
    return {1, QStringLiteral("B")};
}

} // namespace

LayerPlot::LayerPlot(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void LayerPlot::setBars(std::vector<LayerBar> bars,
                        std::function<std::vector<CategoryStyle>(const ThemeTokens&)> styles, const QString& axis) {
    bars_ = std::move(bars);
    styles_ = std::move(styles);
    axis_ = axis;
    if (currentItem() >= static_cast<int>(bars_.size())) {
        forgetCurrentItem();
    }
    updateGeometry();
    invalidate();
}

double LayerPlot::top() const {
    double most = 0;
    for (const LayerBar& bar : bars_) {
        most = std::max({most, bar.bytes, bar.without});
    }
    return most > 0 ? most : 1;
}

QSize LayerPlot::minimumSizeHint() const {
    return {300, static_cast<int>(kLayerTop + kLayerBottom + kSmallestRow * static_cast<double>(bars_.size()))};
}

QRectF LayerPlot::rowRect(std::size_t row, const QSizeF& size) const {
    const auto count = static_cast<double>(std::max<std::size_t>(1, bars_.size()));
    const double height =
        std::clamp(std::floor((size.height() - kLayerTop - kLayerBottom) / count), kSmallestRow, kLargestRow);
    return {kLayerGutter, kLayerTop + height * static_cast<double>(row),
            std::max(20.0, size.width() - kLayerGutter - kLayerRight), height};
}

QImage LayerPlot::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    if (bars_.empty() || !styles_) {
        drawText(painter, QRectF(QPointF(), size), Qt::AlignCenter,
                 tr("This run does not say how its cache is laid out over the layers."), t.text3,
                 Theme::instance().font(TypeRole::Body));
        return image;
    }
    const std::vector<CategoryStyle> styles = styles_(t);
    const Unit unit = unitOf(top());
    const QRectF first = rowRect(0, size), last = rowRect(bars_.size() - 1, size);
    const std::vector<double> ticks = roundTicks(top() / unit.bytes, kTicks);
    const double step = ticks.size() > 1 ? ticks[1] : 1;
    const double scale = first.width() / (top() / unit.bytes);
    for (const double tick : ticks) {
        const double x = std::floor(kLayerGutter + tick * scale);
        if (x > first.right() + 1) {
            continue;
        }
        plumbline(painter, x, first.top(), last.bottom() + 4, tick > 0 ? t.line0 : t.line1);
        drawText(painter, QRectF(x - 40, last.bottom() + 6, 80, 16), Qt::AlignCenter,
                 step >= 1 ? countText(std::llround(tick)) : QString::number(tick, 'f', step >= 0.1 ? 1 : 2), t.text3,
                 font);
    }
    drawText(painter, QRectF(kLayerGutter, last.bottom() + 24, first.width(), 16), Qt::AlignCenter,
             tr("%1, %2").arg(axis_, unit.name), t.text2, font);
    const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(kLabelRow / first.height())));
    for (std::size_t i = 0; i < bars_.size(); ++i) {
        const LayerBar& bar = bars_[i];
        const QRectF row = rowRect(i, size);
        const double gap = row.height() >= 10 ? 2 : 0.5;
        const double width = std::max(bar.bytes > 0 ? 1.0 : 0.0, std::round(bar.bytes / unit.bytes * scale));
        fillCategory(painter, QRectF(row.left(), row.top() + gap, width, row.height() - 2 * gap),
                     styles[static_cast<std::size_t>(bar.style)], dpr);
        const double frame = std::round(bar.without / unit.bytes * scale);
        if (frame > width + 2) {
            QPen pen(t.line2, 1);
            pen.setDashPattern({4, 3});
            painter.setPen(pen);
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(
                QRectF(row.left() + width + 0.5, row.top() + gap + 0.5, frame - width - 1, row.height() - 2 * gap - 1));
        }
        if (i % every == 0 && row.height() * static_cast<double>(every) >= kLabelRow) {
            const QRectF place(0, row.center().y() - 8, 0, 16);
            drawText(painter, QRectF(0, place.top(), kLayerGutter - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                     tr("layer %1").arg(bar.layer), t.text2, font);
            drawText(painter, QRectF(row.right() + 8, place.top(), kLayerRight - 12, 16), Qt::AlignVCenter,
                     bytesText(static_cast<std::uint64_t>(bar.bytes)), t.text1, font);
        }
    }
    return image;
}

QString LayerPlot::itemText(int item) const {
    return bars_[static_cast<std::size_t>(item)].words;
}

int LayerPlot::itemAt(QPointF position) const {
    for (std::size_t i = 0; i < bars_.size(); ++i) {
        const QRectF row = rowRect(i, size());
        if (position.y() >= row.top() && position.y() < row.bottom()) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

QRectF LayerPlot::itemFrame(int item) const {
    const QRectF row = rowRect(static_cast<std::size_t>(item), size());
    return {4.5, row.top() + 0.5, static_cast<double>(width() - 10), row.height() - 1};
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/expert_strip.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/precision/number_ticks.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/heat_map.h"

namespace vitrine::ui {

namespace {

constexpr double kExpertLeft = 38, kExpertRight = 12, kExpertTop = 8, kExpertAxis = 24;
constexpr double kLeastRange = 4; ///< dB

QRectF expertPlot(const QSizeF& size) {
    return {kExpertLeft, kExpertTop, std::max(2.0, size.width() - kExpertLeft - kExpertRight),
            std::max(2.0, size.height() - kExpertTop - kExpertAxis)};
}

} // namespace

ExpertStrip::ExpertStrip(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void ExpertStrip::setExperts(std::vector<float> ratios, const ErrorScale& scale, int chosen) {
    ratios_ = std::move(ratios);
    scale_ = scale;
    chosen_ = chosen < itemCount() ? chosen : -1;
    double least = 1e30, most = -1e30;
    for (const float ratio : ratios_) {
        if (std::isfinite(ratio)) {
            least = std::min<double>(least, ratio);
            most = std::max<double>(most, ratio);
        }
    }
    low_ = least > most ? 0 : std::floor(least - 0.4);
    high_ = least > most ? kLeastRange : std::max(low_ + kLeastRange, std::ceil(most));
    forgetCurrentItem();
    invalidate();
}

QRectF ExpertStrip::dotOf(int expert, const QSizeF& size) const {
    const float ratio = ratios_[static_cast<std::size_t>(expert)];
    if (std::isnan(ratio)) {
        return {};
    }
    const QRectF plot = expertPlot(size);
    const double each = (plot.width() - 4) / std::max(1, itemCount());
    const double y = plot.bottom() - (std::clamp<double>(ratio, low_, high_) - low_) / (high_ - low_) * plot.height();
    return {plot.left() + 2 + expert * each, y - 2.5, std::clamp(each, 2.5, 6.0), 5};
}

void ExpertStrip::paintChosen(QPainter& painter, const QSizeF& size) const {
    const QRectF dot = dotOf(chosen_, size), plot = expertPlot(size);
    if (dot.isEmpty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Axis, true);
    painter.fillRect(dot, t.text1);
    painter.setPen(QPen(t.text1, 1.5));
    painter.setBrush(Qt::NoBrush);
    const QRectF frame = dot.adjusted(-3, -2.5, 3, 2.5);
    painter.drawRect(frame);
    const double y = plot.bottom() - plot.height() * 0.11;
    if (y - 8 > frame.bottom()) {
        plumbline(painter, frame.center().x(), frame.bottom(), y, t.text1);
    }
    const QString words =
        tr("expert %1: %2").arg(chosen_).arg(decimalText(ratios_[static_cast<std::size_t>(chosen_)], 2));
    const double wide = textWidth(words, strong);
    const bool right = frame.center().x() + 8 + wide < plot.right();
    const QRectF place(right ? frame.center().x() + 5 : frame.center().x() - 5 - wide, y - 8, wide, 16);
    painter.fillRect(place.adjusted(-2, 0, 2, 0), withAlpha(t.panel, 0.85));
    drawText(painter, place, Qt::AlignLeft | Qt::AlignVCenter, words, t.text1, strong);
}

QImage ExpertStrip::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.panel);
    QPainter painter(&image);
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const QRectF plot = expertPlot(size);
    for (const double value : numberTicks(low_, high_, 5).values) {
        const double y = plot.bottom() - (value - low_) / (high_ - low_) * plot.height();
        hairline(painter, plot.left(), plot.right(), y, t.line0);
        drawText(painter, QRectF(0, y - 8, plot.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                 decimalText(value, 0), t.text3, axis);
    }
    for (int expert = 0; expert < itemCount(); ++expert) {
        if (const QRectF dot = dotOf(expert, size); !dot.isEmpty()) {
            painter.fillRect(dot, heatColor(scale_.stepOf(ratios_[static_cast<std::size_t>(expert)])));
        }
    }
    const int last = itemCount() - 1;
    for (int mark = 0; mark < 5 && last > 0; ++mark) {
        const int expert = mark == 4 ? last : (last + 1) * mark / 4;
        const double x =
            dotOf(0, size).isEmpty() ? plot.left() : plot.left() + 3 + (plot.width() - 4) * expert / (last + 1);
        drawText(painter, QRectF(mark == 4 ? plot.right() - 40 : x - 20, plot.bottom() + 5, 40, 14),
                 (mark == 4 ? Qt::AlignRight : Qt::AlignHCenter) | Qt::AlignVCenter, QString::number(expert), t.text3,
                 axis);
    }
    if (chosen_ >= 0) {
        paintChosen(painter, size);
    }
    return image;
}

int ExpertStrip::itemAt(QPointF position) const {
    const QRectF plot = expertPlot(size());
    if (itemCount() == 0 || !plot.contains(position)) {
        return -1;
    }
    const double each = (plot.width() - 4) / itemCount();
    return std::clamp(static_cast<int>((position.x() - plot.left() - 2) / each), 0, itemCount() - 1);
}

int ExpertStrip::itemBeside(int item, int key) const {
    if (item < 0) {
        return std::max(0, chosen_);
    }
    const int by = key == Qt::Key_Right ? 1 : key == Qt::Key_Left ? -1 : 0;
    return std::clamp(item + by, 0, itemCount() - 1);
}

QString ExpertStrip::itemText(int item) const {
    return tr("Expert %1: %2 dB").arg(item).arg(decimalText(ratios_[static_cast<std::size_t>(item)], 2));
}

QRectF ExpertStrip::itemFrame(int item) const {
    const QRectF dot = dotOf(item, size());
    return dot.isEmpty() ? dot : dot.adjusted(-2.5, -2.5, 2.5, 2.5);
}

QString ExpertStrip::spoken() const {
    return currentItem() < 0 && chosen_ >= 0 ? itemText(chosen_) : ItemPlot::spoken();
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/head_strip.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kHeadStripMargin = 12, kHeadStripHeight = 16;

} // namespace

HeadStrip::HeadStrip(QWidget* parent) : ItemPlot(tr("Heads"), parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void HeadStrip::setHeads(std::vector<double> shares, int heads, int chosen) {
    shares_ = std::move(shares);
    heads_ = shares_.empty() ? 0 : heads;
    chosen_ = shares_.size() > 1 ? chosen : -1;
    if (currentItem() >= heads_) {
        forgetCurrentItem();
    }
    invalidate();
}

double HeadStrip::shareOf(int head) const {
    return shares_[shares_.size() > 1 ? std::min(static_cast<std::size_t>(head), shares_.size() - 1) : 0];
}

QRectF HeadStrip::bar(int head, const QSizeF& size) const {
    const double step = (size.width() - 2 * kHeadStripMargin) / std::max(1, heads_);
    const double gap = step >= 3 ? 1 : 0;
    const double left = kHeadStripMargin + std::floor(head * step),
                 right = kHeadStripMargin + std::floor((head + 1) * step);
    return {left, (size.height() - kHeadStripHeight) / 2, std::max(1.0, right - left - gap), kHeadStripHeight};
}

int HeadStrip::itemAt(QPointF position) const {
    const double x = position.x() - kHeadStripMargin, all = width() - 2 * kHeadStripMargin;
    return x >= 0 && x < all && heads_ > 0 ? std::min(heads_ - 1, static_cast<int>(x * heads_ / all)) : -1;
}

QString HeadStrip::itemText(int item) const {
    return tr("Head %1: %2 of its blocks are computed").arg(item).arg(shareText(shareOf(item)));
}

QRectF HeadStrip::itemFrame(int item) const {
    return bar(item, size()).adjusted(-1.5, -2.5, 1.5, 2.5);
}

int HeadStrip::itemBeside(int item, int key) const {
    const int step = key == Qt::Key_Right || key == Qt::Key_Down ? 1 : -1;
    return std::clamp(item < 0 ? std::max(0, chosen_) : item + step, 0, std::max(0, heads_ - 1));
}

QImage HeadStrip::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& theme = themeTokens();
    QImage image = plotCanvas(size, dpr, theme.panel);
    QPainter painter(&image);
    const double most = shares_.empty() ? 0 : *std::max_element(shares_.begin(), shares_.end());
    for (int head = 0; head < heads_; ++head) {
        const QRectF all = bar(head, size);
        painter.fillRect(all, theme.sets.at(QStringLiteral("blocks.empty")));
        const double height = most > 0 ? std::max(1.0, all.height() * shareOf(head) / most) : 0;
        painter.fillRect(QRectF(all.left(), all.bottom() - height, all.width(), height),
                         theme.sets.at(QStringLiteral("blocks.full")));
        if (head == chosen_) {
            painter.setPen(QPen(theme.text1, 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(all.adjusted(-0.5, -1.5, 0.5, 1.5));
        }
    }
    return image;
}

} // namespace vitrine::ui

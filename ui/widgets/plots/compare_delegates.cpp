// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/compare_delegates.h"

#include <QPainter>
#include <QVariantList>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kBarRoom = 44, kBarMargin = 8, kTextPadding = 8, kNarrowDelta = 120, kMarks = 7;
constexpr double kMarkBar = 8, kNoiseMark = 6;

} // namespace

void DeltaBarDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const QVariant share = index.data(ShareRole);
    if (option.rect.width() < kNarrowDelta) {
        FactDelegate::paint(painter, option, index);
        return;
    }
    const ThemeTokens& t = themeTokens();
    QStyleOptionViewItem text = option;
    text.rect.setRight(option.rect.right() - kBarRoom + kTextPadding); // the edge is not where this text ends
    FactDelegate::paint(painter, text, index);
    const QRect room(option.rect.right() - kBarRoom + 1, option.rect.top(), kBarRoom, option.rect.height());
    painter->fillRect(room, (option.state & QStyle::State_Selected) != 0 ? t.selection : t.panel);
    if (!share.isValid()) {
        return;
    }
    const double half = (kBarRoom - kBarMargin) / 2.0, zero = room.left() + half;
    const double part = std::clamp(share.toDouble(), -1.0, 1.0);
    const double width = part == 0 ? 0 : std::max(1.0, std::abs(part) * (half - 1));
    const QVariant category = index.data(CategoryRole);
    const QColor fill = category.isValid() ? t.categories[static_cast<std::size_t>(category.toInt())].fill : t.text3;
    const double top = room.center().y() - kMarkBar / 2 + 1;
    const QRectF bar(part < 0 ? zero - width : zero, top, width, kMarkBar);
    if (hollow_ && part < 0) {
        painter->setPen(QPen(t.line2, 1));
        painter->setBrush(Qt::NoBrush);
        painter->drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5));
    } else {
        painter->fillRect(bar, fill);
    }
    plumbline(*painter, zero, room.top() + 4, room.bottom() - 3, t.line2);
}

void NoiseDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const QVariantList marks = index.data(MarksRole).toList();
    if (marks.size() != kMarks) {
        FactDelegate::paint(painter, option, index);
        return;
    }
    const ThemeTokens& t = themeTokens();
    painter->fillRect(option.rect, (option.state & QStyle::State_Selected) != 0 ? t.selection
                                   : index.row() % 2 == 1                       ? t.band
                                                                                : t.canvas);
    const auto value = [&](int i) { return marks[i].toDouble(); };
    const double noise = value(6), lowBand = value(1) - noise, highBand = value(1) + noise;
    const double low = std::min({value(0), value(3), lowBand}), high = std::max({value(2), value(5), highBand});
    const QRectF room = QRectF(option.rect).adjusted(12, 0, -12, 0);
    const auto x = [&](double at) {
        return high > low ? room.left() + (at - low) / (high - low) * room.width() : room.center().x();
    };
    const double middle = room.center().y();
    painter->fillRect(QRectF(x(lowBand), middle - 7, std::max(2.0, x(highBand) - x(lowBand)), 14),
                      freeHatch(t, 6, deviceRatio(*painter)));
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const double above = middle - 3.5, below = middle + 3.5;
    painter->setPen(QPen(t.compareA, 1.5));
    painter->drawLine(QPointF(x(value(0)), above), QPointF(x(value(2)), above));
    painter->setPen(QPen(t.compareB, 1.5));
    painter->drawLine(QPointF(x(value(3)), below), QPointF(x(value(5)), below));
    painter->setBrush(t.canvas);
    painter->drawRect(QRectF(x(value(4)) - kNoiseMark / 2, below - kNoiseMark / 2, kNoiseMark, kNoiseMark));
    painter->setPen(Qt::NoPen);
    painter->setBrush(t.compareA);
    painter->drawEllipse(QPointF(x(value(1)), above), kNoiseMark / 2, kNoiseMark / 2);
    painter->restore();
}

QSize NoiseDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const QSize text = FactDelegate::sizeHint(option, index);
    return index.data(MarksRole).isValid() ? QSize(std::max(kWidth, text.width()), text.height()) : text;
}

} // namespace vitrine::ui

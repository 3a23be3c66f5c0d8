// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/format_delegate.h"

#include <QPainter>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kBadgeLeft = 12, kBadgeRoom = 26, kBadge = 16;

} // namespace

void FormatDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    QStyleOptionViewItem own = option;
    const bool isA = index.row() == a_;
    own.state.setFlag(QStyle::State_Selected, isA);
    own.state.setFlag(QStyle::State_HasFocus, option.state.testFlag(QStyle::State_HasFocus) && index.column() == 0);
    if (index.column() > 0) {
        FactDelegate::paint(painter, own, index);
        return;
    }
    const ThemeTokens& t = themeTokens();
    painter->fillRect(option.rect, isA ? t.selection : index.row() % 2 == 1 ? t.band : t.canvas);
    const QRect name = option.rect.adjusted(kBadgeLeft + kBadgeRoom - 4, 0, 0, 0);
    drawText(*painter, name, Qt::AlignLeft | Qt::AlignVCenter, index.data().toString(), t.text1,
             Theme::instance().font(TypeRole::Table));
    if (isA || index.row() == b_) {
        const QRectF badge(option.rect.left() + kBadgeLeft, option.rect.center().y() - kBadge / 2 + 1, kBadge, kBadge);
        drawRunBadge(*painter, badge, isA ? QLatin1Char('A') : QLatin1Char('B'), true);
    }
}

} // namespace vitrine::ui

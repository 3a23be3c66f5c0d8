// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/set_delegate.h"

#include <QPainter>

#include "ui/views/planner/plan_curves.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kSquareLeft = 12, kSquareRoom = 21;

} // namespace

void SetDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    if (index.column() > 0) {
        FactDelegate::paint(painter, option, index);
        return;
    }
    const bool selected = (option.state & QStyle::State_Selected) != 0;
    painter->fillRect(option.rect, selected ? themeTokens().selection : themeTokens().panel);
    QStyleOptionViewItem rest = option;
    rest.rect.setLeft(option.rect.left() + kSquareRoom);
    FactDelegate::paint(painter, rest, index);
    drawSetNumber(*painter, QPointF(option.rect.left() + kSquareLeft, option.rect.center().y() - 7),
                  static_cast<std::size_t>(index.row()), index.row() == chosen_);
}

} // namespace vitrine::ui

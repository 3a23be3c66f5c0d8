// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/style_paint.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QPushButton>

#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui::stylepaint {

bool flag(const QWidget* widget, const char* name) {
    return widget != nullptr && widget->property(name).toBool();
}

void roundedBox(QPainter* painter, const QRect& rect, const QColor& fill, const QColor& border, double radius) {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(border, 1));
    painter->setBrush(fill);
    painter->drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
    painter->restore();
}

void focusFrame(QPainter* painter, const QRect& rect, double radius) {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(themeTokens().accent, 2));
    painter->setBrush(Qt::NoBrush);
    painter->drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), radius, radius);
    painter->restore();
}

void paintButton(const QStyleOption* option, QPainter* painter, const QWidget* widget) {
    const ThemeTokens& t = themeTokens();
    const bool enabled = option->state & QStyle::State_Enabled;
    const bool pressed = option->state & QStyle::State_Sunken;
    const bool hovered = enabled && (option->state & QStyle::State_MouseOver);
    QColor fill = (option->state & QStyle::State_On) ? t.selection : pressed ? t.pressed : hovered ? t.hover : t.raised;
    QColor border = t.line1;
    if (flag(widget, kPrimaryProperty) && enabled) {
        fill = pressed ? t.accentFill.darker(115) : t.accentFill;
        border = t.accentFill;
    } else if (flag(widget, kAlarmProperty)) {
        border = t.bad;
        fill = hovered ? t.hover : QColor(Qt::transparent);
    }
    roundedBox(painter, option->rect, fill, border);
    if (option->state & QStyle::State_HasFocus && option->state & QStyle::State_KeyboardFocusChange) {
        focusFrame(painter, option->rect);
    }
}

void paintCheckBox(const QStyleOption* option, QPainter* painter) {
    const ThemeTokens& t = themeTokens();
    const bool enabled = option->state & QStyle::State_Enabled;
    const bool on = option->state & QStyle::State_On;
    const QRect box = option->rect;
    roundedBox(painter, box, on ? (enabled ? t.accentFill : t.disabled) : t.canvas,
               on ? (enabled ? t.accentFill : t.disabled) : (enabled ? t.line2 : t.line1), 3);
    if (on) {
        painter->drawPixmap(box.adjusted(1, 1, -1, -1).topLeft(),
                            iconPixmap(QStringLiteral("check"), box.width() - 2, t.onAccent, deviceRatio(*painter)));
    } else if (option->state & QStyle::State_NoChange) {
        painter->fillRect(box.adjusted(3, box.height() / 2 - 1, -3, -(box.height() / 2 - 1)), t.text2);
    }
}

void paintScrollBar(const QStyleOptionSlider* option, QPainter* painter, const QRect& handle) {
    const ThemeTokens& t = themeTokens();
    // A table that lies on another surface than the canvas has its colour as base: the groove is part of it.
    const QColor base = option->palette.color(QPalette::Base);
    painter->fillRect(option->rect, base == t.canvas ? t.panel : base);
    if (option->maximum <= option->minimum) {
        return;
    }
    const bool hovered = option->state & QStyle::State_MouseOver;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(Qt::NoPen);
    painter->setBrush(hovered ? t.line2 : withAlpha(t.line2, 0.55));
    painter->drawRoundedRect(QRectF(handle).adjusted(2, 2, -2, -2), 3, 3);
    painter->restore();
}

void paintComboBox(const QStyleOptionComboBox* option, QPainter* painter, const QWidget* widget) {
    const ThemeTokens& t = themeTokens();
    const bool hovered = (option->state & QStyle::State_Enabled) && (option->state & QStyle::State_MouseOver);
    roundedBox(painter, option->rect, option->editable ? t.canvas : hovered ? t.hover : t.raised, t.line1);
    if (option->state & QStyle::State_HasFocus) {
        focusFrame(painter, option->rect);
    }
    const int side = 12;
    const QPoint at(option->rect.right() - side - 6, option->rect.center().y() - side / 2 + 1);
    const bool enabled = widget == nullptr || widget->isEnabled();
    painter->drawPixmap(
        at, iconPixmap(QStringLiteral("chevron-down"), side, enabled ? t.text3 : t.disabled, deviceRatio(*painter)));
}

void paintTab(const QStyleOptionTab* option, QPainter* painter) {
    const ThemeTokens& t = themeTokens();
    const bool selected = option->state & QStyle::State_Selected;
    painter->fillRect(option->rect, option->state & QStyle::State_MouseOver ? t.hover : t.panel);
    if (selected) {
        painter->fillRect(QRect(option->rect.left(), option->rect.bottom() - 1, option->rect.width(), 2), t.accent);
    }
    if (option->state & QStyle::State_HasFocus) {
        focusFrame(painter, option->rect.adjusted(1, 1, -1, -1), 2);
    }
}

} // namespace vitrine::ui::stylepaint

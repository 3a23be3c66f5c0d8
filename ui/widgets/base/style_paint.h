// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How VitrineStyle paints single controls. Properties that say which look a control has are set in style.h.

#include <QPainter>
#include <QStyleOption>
#include <QWidget>

namespace vitrine::ui::stylepaint {

inline constexpr char kHeightProperty[] = "vitrineHeight";
inline constexpr char kPrimaryProperty[] = "vitrinePrimary";
inline constexpr char kExtraProperty[] = "vitrineExtra";
inline constexpr char kAlarmProperty[] = "vitrineAlarm";

/// A property that is set to true.
bool flag(const QWidget* widget, const char* name);
void roundedBox(QPainter* painter, const QRect& rect, const QColor& fill, const QColor& border, double radius = 4);
void focusFrame(QPainter* painter, const QRect& rect, double radius = 4);
void paintButton(const QStyleOption* option, QPainter* painter, const QWidget* widget);
void paintCheckBox(const QStyleOption* option, QPainter* painter);
void paintScrollBar(const QStyleOptionSlider* option, QPainter* painter, const QRect& handle);
void paintComboBox(const QStyleOptionComboBox* option, QPainter* painter, const QWidget* widget);
void paintTab(const QStyleOptionTab* option, QPainter* painter);

} // namespace vitrine::ui::stylepaint

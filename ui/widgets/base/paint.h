// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Small drawing tools that painters and delegates share. Everything in logical pixels; GUI thread or a worker that owns
// its QImage.

#include <QBrush>
#include <QPainter>
#include <QString>

#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

/// The ratio of device pixels to logical ones of what the painter draws on.
double deviceRatio(const QPainter& painter);

/// A texture tile of `kind` with 1 px lines in `ink`, made for a device ratio. Qt's pattern brushes do not scale.
QBrush hatchBrush(Hatch kind, int tile, const QColor& ink, double dpr);
/// The hatch of a category: ink at 26 % on dark fills, 20 % on light ones. NoBrush when it has none.
QBrush categoryHatch(const CategoryStyle& style, double dpr);
/// Free, reserved and too-small areas: line2 diagonal.
QBrush freeHatch(const ThemeTokens& theme, int tile, double dpr);

QColor withAlpha(QColor color, double alpha);

/// Fills a rectangle in a category's colour, hatched where it is at least 8 px high and 2 px wide.
void fillCategory(QPainter& painter, const QRectF& rect, const CategoryStyle& style, double dpr);
/// The 12 px swatch with radius 2 that stands for a category.
void drawSwatch(QPainter& painter, const QRectF& rect, const CategoryStyle& style);

/// Horizontal and vertical hairlines at whole pixels.
void hairline(QPainter& painter, double x0, double x1, double y, const QColor& color);
void plumbline(QPainter& painter, double x, double y0, double y1, const QColor& color);

/// Draws one line of text in a rectangle, elided with … when it does not fit; returns its width.
double drawText(QPainter& painter, const QRectF& rect, int alignment, const QString& text, const QColor& color,
                const QFont& font);
double textWidth(const QString& text, const QFont& font);

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the plots of packed sequences share: where a position is, and the fills of tokens.

#include <QPainter>
#include <cstdint>

#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

inline constexpr double kPackRight = 12; ///< room after a plot

/// Logical pixels of a position of a sequence of `length`, and back.
double packX(std::int64_t position, std::int64_t length, double width);
std::int64_t packPosition(double x, std::int64_t length, double width);
/// A round number of positions between marks of a ruler: a power of two gives eight of them at most.
std::int64_t rulerStep(std::int64_t length);
/// Rows side by side alternate.
QColor trainedColor(bool second);
void paintUntrained(QPainter& painter, const QRectF& rect, bool second, double dpr);
void dashedFrame(QPainter& painter, const QRectF& rect);
/// Left and Right, and Up and Down, walk.
int packBeside(int item, int key, int count);
/// A triangle that points down at `x`, its tip at `y`.
void paintPackMark(QPainter& painter, double x, double y, const QColor& color);

} // namespace vitrine::ui

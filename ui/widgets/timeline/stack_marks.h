// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What stands over the areas of a stack: the budget, failed requests, the peak, the plan, what the allocator reserved.

#include "ui/widgets/timeline/stack_painter.h"

namespace vitrine::ui {

/// All marks of the input; labels take their places so that none covers another.
void drawStackMarks(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                    LabelPlaces& places, const ThemeTokens& theme);

} // namespace vitrine::ui

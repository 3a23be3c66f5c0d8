// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The areas of a stack in device pixels: rectangles of layers over columns of equal height, with their hatches and
// labels.

#include <vector>

#include "ui/widgets/timeline/stack_painter.h"

namespace vitrine::ui {

/// A layer's rectangle over neighbouring columns of equal height, in device pixels.
struct StackRun {
    int x0, x1, top, bottom;
};

/// Runs of every layer, bottom layer first; layers that are not shown have none.
std::vector<std::vector<StackRun>> stackRuns(const StackInput& input, double perByte, int height);

/// Fills the runs at a painter that is scaled to device pixels.
void drawStackRuns(QPainter& painter, const StackInput& input, const std::vector<std::vector<StackRun>>& runs, int left,
                   int top, double dpr, const ThemeTokens& theme);

/// Names of layers where they fit inside their areas.
void drawStackLabels(QPainter& painter, const StackModel& model, const std::vector<std::vector<StackRun>>& runs,
                     const PlotFrame& frame, LabelPlaces& places, const ThemeTokens& theme);

} // namespace vitrine::ui

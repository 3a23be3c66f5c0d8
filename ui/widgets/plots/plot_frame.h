// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What all painters of lanes share. A painter is a pure function of its input: it makes one QImage, which lanes cache
// and draw the cursor and the measured range over. Sizes are logical pixels; images have `dpr` set.

#include <QImage>
#include <QPainter>
#include <functional>
#include <vector>

#include "ui/models/common/axis_map.h"
#include "ui/models/common/stack_model.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

inline constexpr double kGutter = 60;

/// The canvas of a painter: the whole lane with the gutter at the left.
struct PlotFrame {
    QSizeF size;
    double dpr = 1;
    double gutter = kGutter;

    QRectF plot() const { return {gutter, 0, std::max(1.0, size.width() - gutter), size.height()}; }
    QImage canvas(const QColor& fill) const;
    int columns() const { return std::max(1, static_cast<int>(plot().width() * dpr)); } ///< in device pixels
};

/// Bytes to y and back: 0 at the bottom of the plot, `top` at its upper edge.
struct ByteScale {
    ByteGrid grid;
    std::uint64_t top = 1; ///< the value at the upper edge
    double height = 1;

    double y(double bytes) const {
        return height - bytes / static_cast<double>(std::max<std::uint64_t>(1, top)) * height;
    }
    double bytes(double y) const { return (height - y) / std::max(1.0, height) * static_cast<double>(top); }
};

/// A scale whose upper edge is `top` plus some air, with a grid of round numbers. `low` is the room of a label.
ByteScale byteScale(std::uint64_t top, double height, int lines = 6);

/// Grid lines and labels of a byte scale: "0 20 40 60 80 100 GiB" in the gutter.
void drawByteScale(QPainter& painter, const PlotFrame& frame, const ByteScale& scale, const ThemeTokens& theme);

/// Style of a stack layer: the category's own, or one of the distinct fills in turn, hatched from the second round on.
CategoryStyle layerStyle(const StackLayer& layer, const ThemeTokens& theme);

/// A label that must not cover another one: keeps taken rectangles.
class LabelPlaces {
public:
    bool take(const QRectF& rect);

private:
    std::vector<QRectF> taken_;
};

} // namespace vitrine::ui

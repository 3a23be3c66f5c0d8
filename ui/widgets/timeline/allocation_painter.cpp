// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/allocation_painter.h"

#include <QObject>
#include <algorithm>
#include <cmath>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"

namespace vitrine::ui {

namespace {

constexpr double kLabelWidth = 70, kLabelHeight = 13, kSmallLine = 3, kThin = 8;

std::uint64_t placeOf(const AllocationInput& input, std::uint64_t address) {
    return input.byAddress ? input.timeline->memory().compactAddress(address) : address;
}

void drawShape(QPainter& painter, const QRectF& rect, const profiler::AllocationRow& row, const AllocationInput& input,
               double dpr, const ThemeTokens& theme) {
    const CategoryStyle& style = theme.category(row.category);
    fillCategory(painter, rect, style, dpr);
    if (rect.height() > 2) {
        // Many thin blocks above each other are one thing with fine lines, not stripes.
        const double line = rect.height() > kThin ? 0.6 : 0.25;
        painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), 1), withAlpha(theme.canvas, line));
        if (rect.width() > 4) {
            painter.fillRect(QRectF(rect.left(), rect.top(), 1, rect.height()), withAlpha(theme.canvas, 0.6));
        }
    }
    if (rect.width() < kLabelWidth || rect.height() < kLabelHeight) {
        return;
    }
    const QFont font = Theme::instance().font(TypeRole::Axis);
    QString text = shortTensorName(input.timeline->text(row.name));
    const QString sized = text + QStringLiteral("   ") + bytesText(row.bytes);
    if ((rect.height() > 26 || rect.width() > 200) && textWidth(sized, font) <= rect.width() - 12) {
        text = sized;
    }
    if (textWidth(text, font) <= rect.width() - 12) {
        const double middle = rect.top() + std::min(rect.height() / 2, 9.0);
        drawText(painter, QRectF(rect.left() + 6, middle - 7, rect.width() - 12, 14), Qt::AlignVCenter, text, style.ink,
                 font);
    }
}

void drawFailureRoom(QPainter& painter, const AllocationInput& input, const PlotFrame& frame, const ByteScale& scale,
                     const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    for (const base::OutOfMemoryEvent& failure : input.timeline->memory().outOfMemory()) {
        const double x = plot.left() + input.axis.x(failure.time);
        if (x < plot.left() || x > plot.right() + 1) {
            continue;
        }
        plumbline(painter, std::min(x, plot.right() - 1), plot.top(), plot.bottom(), theme.bad);
        if (failure.budget <= failure.reserved || failure.budget > scale.top) {
            continue;
        }
        const std::uint64_t room = failure.budget - failure.reserved;
        const double high = plot.top() + scale.y(static_cast<double>(failure.budget)),
                     low = plot.top() + scale.y(static_cast<double>(failure.reserved));
        painter.fillRect(QRectF(x + 2, high, std::max(20.0, plot.right() - 8 - x - 2), low - high).intersected(plot),
                         freeHatch(theme, 10, frame.dpr));
        const QFont strong = Theme::instance().font(TypeRole::Table, true);
        const QString text =
            failure.largestFree < failure.requested && failure.largestFree < room
                ? QObject::tr("%1 free, largest block %2: %3 does not fit")
                      .arg(bytesText(room), bytesText(failure.largestFree), bytesText(failure.requested))
                : QObject::tr("%1 free: %2 does not fit").arg(bytesText(room), bytesText(failure.requested));
        const double width = textWidth(text, strong) + 2;
        if (x - 24 - width > plot.left() && low - high >= 22) { // where there is less room, the lane above says it
            const double y = std::min(high + 20, (high + low) / 2 - 8);
            painter.fillRect(QRectF(x - 28 - width, y, width + 8, 16), withAlpha(theme.canvas, 0.85));
            drawText(painter, QRectF(x - 24 - width, y, width, 16), Qt::AlignRight | Qt::AlignVCenter, text, theme.bad,
                     strong);
        }
    }
}

} // namespace

ByteScale allocationScale(const AllocationInput& input, double height) {
    std::uint64_t top = input.timeline->memory().extent(input.byAddress);
    if (input.budget && *input.budget <= top * 6) {
        top = std::max(top, *input.budget);
    }
    ByteScale scale = byteScale(top, height, 5);
    scale.top = std::max<std::uint64_t>(4, static_cast<std::uint64_t>(static_cast<double>(top) * 1.01));
    return scale;
}

AllocationPicture paintAllocations(const AllocationInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    AllocationPicture picture;
    picture.image = frame.canvas(theme.canvas);
    if (!input.timeline) {
        return picture;
    }
    QPainter painter(&picture.image);
    const QRectF plot = frame.plot();
    const ByteScale scale = allocationScale(input, plot.height());
    drawByteScale(painter, frame, scale, theme);
    painter.setClipRect(plot);
    const auto rows = input.timeline->memory().allocations();
    const double nsPerPixel = input.axis.nsPerPixel();
    const double bytesPerPixel = static_cast<double>(scale.top) / std::max(1.0, plot.height());
    const auto shapes = input.timeline->memory().shapes(input.axis.range().begin, input.axis.range().end, nsPerPixel,
                                                        bytesPerPixel, input.byAddress);
    std::vector<AllocationHit> small;
    for (const profiler::AllocationShape& shape : shapes) {
        const profiler::AllocationRow row = rows[shape.row];
        if ((!input.categories.empty() && !input.categories.contains(static_cast<int>(row.category))) ||
            (input.onlyName && row.name != *input.onlyName)) {
            continue;
        }
        const double x0 = std::max(-4.0, input.axis.x(shape.begin)),
                     x1 = std::min(plot.width() + 4, input.axis.x(shape.end));
        const double high = std::round(scale.y(static_cast<double>(placeOf(input, shape.addressEnd))));
        const double low = std::round(scale.y(static_cast<double>(placeOf(input, shape.addressBegin))));
        QRectF rect(plot.left() + x0, plot.top() + high, x1 - x0, low - high);
        if (shape.count <= 1 && rect.height() >= 1 && rect.width() >= 0.5) {
            rect.setWidth(std::max(1.0, rect.width()));
            picture.hits.push_back({rect, shape.row, 1});
            ++picture.shapes;
            continue;
        }
        // Too small alone: a hatch at the place, never nothing.
        rect.setHeight(std::max(kSmallLine, rect.height()));
        rect.setWidth(std::max(2.0, rect.width()));
        rect.moveBottom(std::min(plot.bottom(), std::max(rect.bottom(), plot.top() + kSmallLine)));
        small.push_back({rect, shape.row, shape.count});
        picture.small += shape.count;
    }
    // Under the blocks that have a size: between them the lines of what is small would be stripes over the whole plot.
    for (const AllocationHit& hit : small) {
        const CategoryStyle& style = theme.category(rows[hit.row].category);
        painter.fillRect(hit.rect, style.fill);
        painter.fillRect(hit.rect, hatchBrush(Hatch::BackDiagonal, 4, withAlpha(style.ink, 0.15), frame.dpr));
    }
    for (const AllocationHit& hit : picture.hits) {
        drawShape(painter, hit.rect, rows[hit.row], input, frame.dpr, theme);
    }
    picture.hits.insert(picture.hits.end(), small.begin(), small.end());
    const QColor edge = theme.accent;
    for (const AllocationHit& hit : picture.hits) {
        if (std::binary_search(input.found.begin(), input.found.end(), hit.row)) {
            painter.setPen(QPen(edge, 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(hit.rect.adjusted(0.5, 0.5, -0.5, -0.5));
        }
    }
    painter.setClipping(false);
    drawFailureRoom(painter, input, frame, scale, theme);
    return picture;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/load_lane.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

/// Air over the highest value, for the words at the line of the end.
constexpr double kLoadLaneAir = 1.14;

QString loadedText(const LoadSide& side) {
    return QObject::tr("Loaded %1").arg(durationText(static_cast<base::TimeNs>(std::llround(side.seconds * 1e9))));
}

/// "experts 9.46 GiB" at the right end of every layer that is high enough there.
void drawPartLabels(QPainter& painter, const StackModel& model, const PlotFrame& frame, const ByteScale& scale,
                    double loadedX, const ThemeTokens& theme) {
    if (model.columns.empty()) {
        return;
    }
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const std::size_t last = model.columns.size() - 1;
    const std::vector<StackSpan> spans = stackSpans(model, last, {});
    for (std::size_t layer = 0; layer < spans.size(); ++layer) {
        const double top = plot.top() + scale.y(static_cast<double>(spans[layer].top));
        const double bottom = plot.top() + scale.y(static_cast<double>(spans[layer].bottom));
        if (bottom - top < 15) {
            continue;
        }
        // Where the line of the end would cross the words, the number alone has to do.
        const double room = plot.right() - 14 - std::max(plot.left(), loadedX);
        const QString bytes = bytesText(spans[layer].top - spans[layer].bottom);
        QString text = model.layers[layer].name + QLatin1Char(' ') + bytes;
        text = textWidth(text, font) + 2 <= room ? text : bytes;
        const double width = std::ceil(textWidth(text, font)) + 2;
        if (width > room) {
            continue;
        }
        const CategoryStyle style = layerStyle(model.layers[layer], theme);
        const QRectF box(plot.right() - width - 8, (top + bottom) / 2 - 8, width, 16);
        if (style.hatch != Hatch::None) {
            painter.fillRect(box.adjusted(-3, 1, 3, -1), style.fill); // words stay off the hatch
        }
        drawText(painter, box, Qt::AlignVCenter, text, style.ink, font);
    }
}

} // namespace

QImage paintLoad(const LoadSide& side, LoadGrouping grouping, const AxisMap& axis, std::uint64_t top,
                 const PlotFrame& frame, const ThemeTokens& theme) {
    StackInput input;
    input.axis = axis;
    input.model = loadStack(side, grouping, axis, frame.columns());
    input.labels = false;
    input.top = static_cast<std::uint64_t>(static_cast<double>(std::max<std::uint64_t>(1, top)) * kLoadLaneAir);
    QImage image = paintStack(input, frame, theme);
    if (side.steps.empty()) {
        return image;
    }
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    const ByteScale scale = stackScale(input, plot.height());
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    const double x = std::floor(plot.left() + axis.x(side.length));
    drawPartLabels(painter, *input.model, frame, scale, x <= plot.right() ? x : plot.left(), theme);
    if (x >= plot.left() && x <= plot.right()) {
        plumbline(painter, x, plot.top(), plot.bottom(), theme.text1);
        const QString text = loadedText(side);
        const double width = std::ceil(textWidth(text, strong)) + 2;
        const bool right = x + 6 + width < plot.right();
        const QRectF box(right ? x + 6 : x - 6 - width, plot.top() + 1, width, 16);
        painter.fillRect(box.adjusted(-2, 0, 2, 0), withAlpha(theme.canvas, 0.85));
        drawText(painter, box, Qt::AlignVCenter, text, theme.text1, strong);
    }
    const std::uint64_t stays = side.steps.back().total();
    const double peakX = plot.left() + axis.x(side.peakTime);
    if (side.peak > stays + stays / 200 && peakX > plot.left() && peakX <= plot.right()) {
        const QString text = QObject::tr("peak %1").arg(bytesText(side.peak));
        const double width = std::ceil(textWidth(text, strong)) + 2;
        const double y = std::clamp(std::floor(plot.top() + scale.y(static_cast<double>(side.peak))), plot.top() + 9,
                                    plot.bottom() - 9);
        const double from = std::max(plot.left() + 8 + width, peakX - 110);
        if (from + 12 < peakX) {
            const QRectF box(from - width - 4, y - 8, width, 16);
            painter.fillRect(box.adjusted(-2, 0, 2, 0), withAlpha(theme.canvas, 0.85));
            drawText(painter, box, Qt::AlignVCenter, text, theme.text1, strong);
            QPen pen(theme.text2, 1);
            pen.setDashPattern({3, 2});
            painter.setPen(pen);
            painter.drawLine(QPointF(from + 2, y + 0.5), QPointF(peakX, y + 0.5));
        }
    }
    return image;
}

LoadLane::LoadLane(const QString& title, TimeCursor* time, QWidget* parent) : Lane(title, time, parent) {
    setPlotHeight(96, 1);
}

void LoadLane::setSide(LoadSidePtr side) {
    side_ = std::move(side);
    invalidate();
}

void LoadLane::setGrouping(LoadGrouping grouping) {
    grouping_ = grouping;
    invalidate();
}

void LoadLane::setTop(std::uint64_t bytes) {
    top_ = bytes;
    invalidate();
}

QImage LoadLane::paint(const PlotFrame& frame) {
    return side_ ? paintLoad(*side_, grouping_, axis(), top_, frame, themeTokens())
                 : frame.canvas(themeTokens().canvas);
}

void LoadLane::paintOver(QPainter& painter, const PlotFrame&) {
    paintCursor(painter, plotRect());
}

QString LoadLane::spoken() const {
    if (!side_) {
        return {};
    }
    const base::TimeNs when = time()->cursor().value_or(side_->length);
    const LoadPoint& step = side_->at(when);
    std::vector<std::size_t> order(kLoadShares);
    for (std::size_t i = 0; i < kLoadShares; ++i) {
        order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return step.parts[a] > step.parts[b]; });
    QStringList parts;
    for (std::size_t i = 0; i < 3 && step.parts[order[i]] > 0; ++i) {
        parts << loadPartName(static_cast<LoadShare>(order[i])) + QLatin1Char(' ') + bytesText(step.parts[order[i]]);
    }
    return QObject::tr("Cursor %1. Total %2: %3.")
        .arg(durationText(when), bytesText(step.total()), parts.join(QStringLiteral(", ")));
}

} // namespace vitrine::ui

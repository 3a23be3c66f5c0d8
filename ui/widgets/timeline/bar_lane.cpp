// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/bar_lane.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kGapFrom = 3;     ///< width of a bar, px, from which on there is a gap beside it
constexpr double kHatchedFrom = 8; ///< height of a part
constexpr double kNameRow = 14;
constexpr double kNamesGap = 12; ///< between the last bar and the names beside it
constexpr double kSwatch = 9;

/// Edges of the bars: half way to their neighbours.
std::vector<std::pair<double, double>> barEdges(const std::vector<PlotSample>& samples) {
    std::vector<std::pair<double, double>> out(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const double before = i > 0 ? samples[i].x - samples[i - 1].x : -1;
        const double after = i + 1 < samples.size() ? samples[i + 1].x - samples[i].x : -1;
        const double left = before >= 0 ? before : after >= 0 ? after : 8;
        const double right = after >= 0 ? after : left;
        out[i] = {samples[i].x - left / 2, samples[i].x + right / 2};
    }
    return out;
}

} // namespace

BarLane::BarLane(const QString& title, const QString& note, TimeCursor* time, QWidget* parent)
    : Lane(title, time, parent) {
    addHeaderControl(new TextLabel(note, TypeRole::Table, TextColor::Text3, false, this));
}

void BarLane::setBars(std::vector<BarPart> parts, const PlotScale& scale, std::optional<LaneSeries> line) {
    parts_ = std::move(parts);
    plot_.scale = scale;
    plot_.series.clear();
    if (line) {
        plot_.series.push_back(std::move(*line));
    }
    invalidate();
}

void BarLane::setValues(const QStringList& values, const QString& whose, const QString& rest) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        parts_[i].value = values.value(static_cast<qsizetype>(i));
    }
    whose_ = whose;
    rest_ = rest;
    update();
}

QImage BarLane::paint(const PlotFrame& frame) {
    const ThemeTokens& t = themeTokens();
    QImage image = frame.canvas(t.canvas);
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    paintSeriesScale(painter, plot_.scale, plot, frame.gutter, t);
    painter.setClipRect(plot);
    paintBars(painter, frame);
    paintSeries(painter, plot_, axis(), plot, frame.dpr, 0, t);
    return image;
}

void BarLane::paintBars(QPainter& painter, const PlotFrame& frame) const {
    const ThemeTokens& t = themeTokens();
    const QRectF plot = frame.plot();
    std::vector<double> sums;
    std::vector<std::pair<double, double>> edges;
    for (const BarPart& part : parts_) {
        const std::vector<PlotSample> samples = part.samples(axis(), static_cast<int>(plot.width()));
        if (edges.empty()) {
            edges = barEdges(samples);
            sums.assign(samples.size(), 0);
        }
        // Rectangles one by one: a path of as many takes ten times as long.
        const CategoryStyle& style = t.category(part.category);
        const QBrush hatch = categoryHatch(style, frame.dpr);
        for (std::size_t i = 0; i < std::min(samples.size(), sums.size()); ++i) {
            if (!std::isfinite(samples[i].value) || samples[i].value <= 0) {
                continue;
            }
            const double bottom = seriesY(plot_.scale, sums[i], plot);
            sums[i] += samples[i].value;
            const double top = seriesY(plot_.scale, sums[i], plot);
            const double left = std::round(edges[i].first), right = std::round(edges[i].second);
            const double width = right - left >= kGapFrom ? right - left - 1 : std::max(1.0, right - left);
            const QRectF bar(plot.left() + left, std::round(top), width, std::round(bottom) - std::round(top));
            painter.fillRect(bar, style.fill);
            if (bar.height() >= kHatchedFrom) {
                painter.fillRect(bar, hatch);
            }
        }
    }
}

void BarLane::paintOver(QPainter& painter, const PlotFrame& frame) {
    const QRectF plot = plotRect();
    LastBar last;
    for (const BarPart& part : parts_) {
        double value = 0, before = -1, at = -1;
        for (const PlotSample& sample : part.samples(axis(), frame.columns())) {
            if (std::isfinite(sample.value) && sample.x <= plot.width()) {
                before = at;
                at = sample.x;
                value = sample.value;
            }
        }
        last.x = before >= 0 ? at + (at - before) / 2 : at; // the right edge
        last.values.push_back(value);
    }
    if (last.x >= 0) {
        paintNames(painter, plot, last);
    }
    Lane::paintOver(painter, frame);
}

/// The names change with the cursor, so they are no part of the picture.
void BarLane::paintNames(QPainter& painter, const QRectF& plot, const LastBar& last) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    double widest = 0, row = 0;
    for (const BarPart& part : parts_) {
        widest = std::max(widest, textWidth(part.name, font) + textWidth(part.value, font) + 40);
        row += kSwatch + textWidth(part.name + QLatin1Char(' ') + part.value, font) + 18;
    }
    const double rows = static_cast<double>(parts_.size() + (rest_.isEmpty() ? 0 : 1)) * kNameRow;
    if (plot.width() - last.x > widest + 40 && plot.height() >= rows) {
        paintBeside(painter, plot, last);
        return;
    }
    if (row + 8 > plot.width()) {
        return;
    }
    const QRectF box(plot.left() + 4, plot.top() + 1, row, kNameRow);
    painter.fillRect(box, withAlpha(t.canvas, 0.86));
    double x = box.left() + 4;
    for (const BarPart& part : parts_) {
        drawSwatch(painter, QRectF(x, box.top() + 2.5, kSwatch, kSwatch), t.category(part.category));
        x += kSwatch + 4;
        const QString words = part.name + QLatin1Char(' ') + part.value;
        x +=
            drawText(painter, QRectF(x, box.top(), box.right() - x, kNameRow), Qt::AlignVCenter, words, t.text2, font) +
            12;
    }
}

void BarLane::paintBeside(QPainter& painter, const QRectF& plot, const LastBar& last) const {
    const double left = plot.left() + last.x + kNamesGap;
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    double names = 0, values = 0;
    for (const BarPart& part : parts_) {
        names = std::max(names, textWidth(part.name, font));
        values = std::max(values, textWidth(part.value, font));
    }
    double y = plot.bottom() - 6 - kNameRow, below = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i, y -= kNameRow) {
        const BarPart& part = parts_[i];
        // From the middle of its part of the last bar to the name.
        const double middle = seriesY(plot_.scale, below + last.values[i] / 2, plot);
        below += last.values[i];
        painter.setPen(QPen(t.line2, 1));
        painter.drawLine(QPointF(left - kNamesGap + 2, middle), QPointF(left - 3, y + kNameRow / 2));
        drawSwatch(painter, QRectF(left, y + 2.5, kSwatch, kSwatch), t.category(part.category));
        drawText(painter, QRectF(left + 15, y, names + 2, kNameRow), Qt::AlignVCenter, part.name, t.text2, font);
        const double valueLeft = left + 15 + names + 14;
        drawText(painter, QRectF(valueLeft, y, values + 2, kNameRow), Qt::AlignVCenter | Qt::AlignRight, part.value,
                 t.text1, font);
        const QString words = i == 0 ? rest_ : i == 1 ? whose_ : QString();
        const double wordsLeft = valueLeft + values + 20;
        drawText(painter, QRectF(wordsLeft, y, std::max(0.0, plot.right() - wordsLeft), kNameRow), Qt::AlignVCenter,
                 words, t.text3, font);
    }
}

} // namespace vitrine::ui

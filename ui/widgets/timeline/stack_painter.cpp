// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/stack_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/format.h"

namespace vitrine::ui {

namespace {

constexpr int kHatchHeight = 8, kHatchWidth = 2, kLineHeight = 3;

bool shown(const std::set<int>& only, std::size_t layer) {
    return only.empty() || only.contains(static_cast<int>(layer));
}

/// A layer's rectangle over neighbouring columns of equal height, in device pixels.
struct Run {
    int x0, x1, top, bottom;
};

/// Runs of one layer; `below` holds the height of what lies under it, per column, and grows by the layer.
std::vector<Run> layerRuns(const StackModel& model, std::size_t layer, std::vector<std::uint64_t>& below,
                           double perByte, int height) {
    std::vector<Run> runs;
    for (std::size_t c = 0; c < model.columns.size(); ++c) {
        const std::uint64_t bytes = model.value(c, layer);
        const int bottom = height - static_cast<int>(std::lround(static_cast<double>(below[c]) * perByte));
        below[c] += bytes;
        const int top = height - static_cast<int>(std::lround(static_cast<double>(below[c]) * perByte));
        if (bytes == 0 || bottom <= top) {
            continue;
        }
        const int x = static_cast<int>(c);
        if (!runs.empty() && runs.back().x1 == x && runs.back().top == top && runs.back().bottom == bottom) {
            ++runs.back().x1;
        } else {
            runs.push_back({x, x + 1, top, bottom});
        }
    }
    return runs;
}

/// Neighbouring runs that are high enough and together wide enough carry the hatch.
std::vector<QRect> hatchRects(const std::vector<Run>& runs, int left, int minHeight, int minWidth) {
    std::vector<QRect> rects;
    std::size_t from = 0;
    for (std::size_t i = 0; i <= runs.size(); ++i) {
        const bool ok = i < runs.size() && runs[i].bottom - runs[i].top >= minHeight;
        const bool joined = ok && i > from && runs[i - 1].x1 == runs[i].x0;
        if (ok && (i == from || joined)) {
            continue;
        }
        if (i > from && runs[i - 1].x1 - runs[from].x0 >= minWidth) {
            for (std::size_t k = from; k < i; ++k) {
                rects.emplace_back(left + runs[k].x0, runs[k].top, runs[k].x1 - runs[k].x0,
                                   runs[k].bottom - runs[k].top);
            }
        }
        from = ok ? i : i + 1;
    }
    return rects;
}

/// The widest stretch of a layer in which a label of `width` x `height` fits inside the band.
std::optional<QRectF> labelPlace(const std::vector<Run>& runs, double width, double height) {
    std::optional<QRectF> best;
    double bestWidth = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        int top = runs[i].top, bottom = runs[i].bottom, right = runs[i].x1;
        if (bottom - top < height) {
            continue;
        }
        std::size_t k = i + 1;
        for (; k < runs.size() && runs[k].x0 == right; ++k) {
            const int t = std::max(top, runs[k].top), b = std::min(bottom, runs[k].bottom);
            if (b - t < height) {
                break;
            }
            top = t;
            bottom = b;
            right = runs[k].x1;
        }
        const double w = right - runs[i].x0;
        if (w >= width && w > bestWidth) {
            bestWidth = w;
            best = QRectF(runs[i].x0, top, w, bottom - top);
        }
        i = std::max(i, k > i + 64 ? k - 64 : i); // long level stretches need no second look
    }
    return best;
}

void drawFailure(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                 const base::OutOfMemoryEvent& failure, LabelPlaces& places, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const double x = plot.left() + input.axis.x(failure.time);
    if (x < plot.left() || x > plot.right() + 1) {
        return;
    }
    const double low = plot.top() + scale.y(static_cast<double>(failure.held));
    const double high = plot.top() + scale.y(static_cast<double>(failure.held + failure.requested));
    const QRectF ghost(std::floor(x), std::floor(high), std::max(24.0, plot.right() - 8 - x),
                       std::max(2.0, low - high));
    const QRectF inside = ghost.intersected(plot.adjusted(0, 0, 0, 0));
    painter.fillRect(inside, hatchBrush(Hatch::BackDiagonal, 6, withAlpha(theme.bad, 0.75), frame.dpr));
    painter.setPen(QPen(theme.bad, 1, Qt::CustomDashLine));
    QPen dashed(theme.bad, 1);
    dashed.setDashPattern({4, 2});
    painter.setPen(dashed);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(inside.adjusted(0.5, 0.5, -0.5, -0.5));
    plumbline(painter, x, plot.top(), plot.bottom(), theme.bad);
    const QFont strong = Theme::instance().font(TypeRole::Table, true), plain = Theme::instance().font(TypeRole::Table);
    const QString asked = QObject::tr("Asked for %1").arg(bytesText(failure.requested));
    const std::uint64_t needed = failure.held + failure.requested;
    const QString over = needed > failure.budget
                             ? QObject::tr("%1 over the budget").arg(bytesText(needed - failure.budget))
                             : QObject::tr("no free block is large enough");
    const double width = std::max(textWidth(asked, strong), textWidth(over, plain)) + 2;
    double right = x - 10;
    const double top =
        std::clamp(plot.top() + scale.y(static_cast<double>(failure.budget)) - 50, plot.top() + 4, plot.bottom() - 36);
    if (right - width < plot.left()) {
        return; // the ruler's mark says it
    }
    const QRectF box(right - width, top, width, 32);
    if (places.take(box)) {
        drawText(painter, QRectF(box.left(), top, width, 16), Qt::AlignRight | Qt::AlignVCenter, asked, theme.bad,
                 strong);
        drawText(painter, QRectF(box.left(), top + 16, width, 16), Qt::AlignRight | Qt::AlignVCenter, over, theme.text2,
                 plain);
    }
}

void drawBudget(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                LabelPlaces& places, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    QString text = QObject::tr("Budget %1").arg(bytesText(*input.budget));
    double y = std::floor(plot.top() + scale.y(static_cast<double>(*input.budget)));
    const bool inside = *input.budget <= scale.top;
    if (!inside) {
        text = QObject::tr("▲ %1, above this scale").arg(text);
        y = plot.top() + 17;
    } else {
        QPen pen(theme.bad, 1);
        pen.setDashPattern({6, 3});
        painter.setPen(pen);
        painter.drawLine(QPointF(plot.left(), y + 0.5), QPointF(plot.right(), y + 0.5));
        places.take(QRectF(plot.left() + 200, y - 1, plot.width() - 200, 3));
    }
    const double width = textWidth(text, font);
    const double boxTop = y - 17 < plot.top() ? y + 2 : y - 17;
    const QRectF box(plot.left() + 1, boxTop, width + 10, 16);
    painter.fillRect(box, theme.canvas);
    places.take(box);
    drawText(painter, box.adjusted(5, 0, 4, 0), Qt::AlignVCenter, text, theme.bad, font);
}

void drawPeak(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
              LabelPlaces& places, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const double x = plot.left() + input.axis.x(input.peak->maxTime);
    if (x < plot.left() || x > plot.right()) {
        return;
    }
    const double y = plot.top() + scale.y(static_cast<double>(input.peak->maxTotal));
    const bool below = y < plot.top() + 12;
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    QPainterPath triangle;
    const double tip = below ? plot.top() + 10 : y - 2, base = below ? tip - 7 : y - 9;
    triangle.moveTo(x, tip);
    triangle.lineTo(x - 4, base);
    triangle.lineTo(x + 4, base);
    triangle.closeSubpath();
    painter.fillPath(triangle, theme.text1);
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const QString text = QObject::tr("Peak %1").arg(bytesText(input.peak->maxTotal));
    const double width = textWidth(text, font) + 2;
    bool drawn = false;
    for (const double dy : {-34.0, -52.0, -16.0, 6.0}) {
        for (const bool toRight : {true, false}) {
            const QRectF box(toRight ? x + 10 : x - 10 - width, y + dy, width, 16);
            if (drawn || !plot.contains(box) || !places.take(box)) {
                continue;
            }
            if (dy < -16) {
                painter.setPen(theme.text3);
                painter.drawLine(QPointF(toRight ? box.left() - 2 : box.right() + 2, box.center().y() + 1),
                                 QPointF(x + 0.5, base - 1));
            }
            if (dy > -20) {
                painter.fillRect(box.adjusted(-3, 0, 3, 0), withAlpha(theme.canvas, 0.85));
            }
            drawText(painter, box, Qt::AlignVCenter, text, theme.text1, font);
            drawn = true;
        }
    }
    painter.restore();
}

void drawReserved(QPainter& painter, const StackInput& input, const PlotFrame& frame, const ByteScale& scale,
                  const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    QPolygonF line;
    double last = -1;
    for (const auto& [time, value] : *input.reserved) {
        const double x = std::clamp(input.axis.x(time), 0.0, plot.width());
        if (last >= 0) {
            line << QPointF(plot.left() + x, plot.top() + scale.y(last));
        }
        line << QPointF(plot.left() + x, plot.top() + scale.y(value));
        last = value;
    }
    if (last >= 0) {
        line << QPointF(plot.right(), plot.top() + scale.y(last));
    }
    QPen pen(theme.text2, 1);
    pen.setDashPattern({2, 2});
    painter.setPen(pen);
    painter.drawPolyline(line);
}

void drawLabels(QPainter& painter, const StackModel& model, const std::vector<std::vector<Run>>& runs,
                const PlotFrame& frame, LabelPlaces& places, const ThemeTokens& theme) {
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const QRectF plot = frame.plot();
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        if (runs[layer].empty()) {
            continue;
        }
        const CategoryStyle style = layerStyle(model.layers[layer], theme);
        std::uint64_t least = UINT64_MAX, most = 0;
        for (std::size_t c = 0; c < model.columns.size(); ++c) {
            if (model.columns[c].present && model.value(c, layer) > 0) {
                least = std::min(least, model.value(c, layer));
                most = std::max(most, model.value(c, layer));
            }
        }
        // A layer that hardly changes can say its size; any other size would be true for one instant only.
        QStringList texts{model.layers[layer].name};
        if (most > 0 && static_cast<double>(most - least) <= 0.01 * static_cast<double>(most)) {
            texts.prepend(model.layers[layer].name + QLatin1Char(' ') + bytesText(most));
        }
        for (const QString& text : texts) {
            const double width = textWidth(text, font);
            const auto place = labelPlace(runs[layer], (width + 12) * frame.dpr, 18 * frame.dpr);
            if (!place) {
                continue;
            }
            // In the middle of the stretch, at half the height that the layer has there.
            const double middle = place->center().x(), reach = (width / 2 + 6) * frame.dpr;
            int top = 0, bottom = std::numeric_limits<int>::max();
            for (const Run& run : runs[layer]) {
                if (run.x1 > middle - reach && run.x0 < middle + reach) {
                    top = std::max(top, run.top);
                    bottom = std::min(bottom, run.bottom);
                }
            }
            const QRectF box(plot.left() + middle / frame.dpr - width / 2,
                             plot.top() + (top + bottom) / 2.0 / frame.dpr - 8, width, 16);
            if (places.take(box)) {
                drawText(painter, box, Qt::AlignVCenter, text, style.ink, font);
                break;
            }
        }
    }
}

std::vector<std::vector<Run>> allRuns(const StackInput& input, double perByte, int height) {
    const StackModel& model = *input.model;
    std::vector<std::uint64_t> below(model.columns.size(), 0);
    std::vector<std::vector<Run>> runs(model.layers.size());
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        if (shown(input.only, layer)) {
            runs[layer] = layerRuns(model, layer, below, perByte, height);
        }
    }
    return runs;
}

void drawRuns(QPainter& painter, const StackInput& input, const std::vector<std::vector<Run>>& runs, int left, int top,
              double dpr, const ThemeTokens& theme) {
    for (std::size_t layer = 0; layer < runs.size(); ++layer) {
        if (runs[layer].empty()) {
            continue;
        }
        const CategoryStyle style = layerStyle(input.model->layers[layer], theme);
        for (const Run& run : runs[layer]) {
            painter.fillRect(QRect(left + run.x0, top + run.top, run.x1 - run.x0, run.bottom - run.top), style.fill);
        }
        if (!input.frame) {
            continue; // minimaps are too low for texture
        }
        const auto rects =
            hatchRects(runs[layer], left, static_cast<int>(kHatchHeight * dpr), static_cast<int>(kHatchWidth * dpr));
        QBrush hatch = categoryHatch(style, dpr);
        if (!rects.empty() && hatch.style() != Qt::NoBrush) {
            hatch.setTransform({}); // device pixels already
            for (const QRect& rect : rects) {
                painter.fillRect(rect.translated(0, top), hatch);
            }
        }
        const int line = std::max(1, static_cast<int>(std::lround(dpr)));
        const QColor edge = withAlpha(theme.canvas, 0.55);
        for (const Run& run : runs[layer]) {
            if (run.bottom - run.top >= kLineHeight * dpr) {
                painter.fillRect(QRect(left + run.x0, top + run.top, run.x1 - run.x0, line), edge);
            }
        }
    }
}

} // namespace

std::vector<StackSpan> stackSpans(const StackModel& model, std::size_t column, const std::set<int>& only) {
    std::vector<StackSpan> spans;
    std::uint64_t at = 0;
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        const std::uint64_t bytes = shown(only, layer) ? model.value(column, layer) : 0;
        spans.push_back({at, at + bytes});
        at += bytes;
    }
    return spans;
}

ByteScale stackScale(const StackInput& input, double height) {
    std::uint64_t top = input.top != 0 ? input.top : input.model ? input.model->largestTotal() : 0;
    const std::uint64_t data = top;
    // A budget far above the data would flatten them: its label then says that it is above the scale.
    if (input.budget && *input.budget <= data * 6) {
        top = std::max(top, *input.budget);
    }
    for (const base::OutOfMemoryEvent& failure : input.failures) {
        const std::uint64_t needed = failure.held + std::min(failure.requested, UINT64_MAX / 4);
        if (needed <= std::max<std::uint64_t>(data, 1) * 6) {
            top = std::max(top, needed);
        }
    }
    ByteScale scale = byteScale(top, height);
    if (input.frame && input.budget && *input.budget <= top && height > 150) {
        // The words about the budget and a failure stand above its line.
        const double room = input.failures.empty() ? 24 : 44;
        scale.top = std::max(scale.top,
                             static_cast<std::uint64_t>(static_cast<double>(*input.budget) * height / (height - room)));
    }
    return scale;
}

void paintStackColumns(QPainter& painter, const StackInput& input, const QRectF& plot, const ByteScale& scale,
                       double dpr, const ThemeTokens& theme) {
    if (!input.model) {
        return;
    }
    const int height = static_cast<int>(std::lround(plot.height() * dpr));
    const auto runs = allRuns(input, static_cast<double>(height) / static_cast<double>(scale.top), height);
    painter.save();
    painter.scale(1 / dpr, 1 / dpr);
    drawRuns(painter, input, runs, static_cast<int>(std::lround(plot.left() * dpr)),
             static_cast<int>(std::lround(plot.top() * dpr)), dpr, theme);
    painter.restore();
}

QImage paintStack(const StackInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    QImage image = frame.canvas(theme.canvas);
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    const ByteScale scale = stackScale(input, plot.height());
    if (input.frame) {
        drawByteScale(painter, frame, scale, theme);
        for (const base::TimeNs guide : input.guides) {
            const double x = input.axis.x(guide);
            if (x > 0 && x < plot.width()) {
                plumbline(painter, plot.left() + x, plot.top(), plot.bottom(), withAlpha(theme.line1, 0.5));
            }
        }
    }
    if (!input.model || input.model->columns.empty()) {
        return image;
    }
    const int height = static_cast<int>(std::lround(plot.height() * frame.dpr));
    const auto runs = allRuns(input, static_cast<double>(height) / static_cast<double>(scale.top), height);
    painter.save();
    painter.setClipRect(plot);
    painter.scale(1 / frame.dpr, 1 / frame.dpr);
    drawRuns(painter, input, runs, static_cast<int>(std::lround(plot.left() * frame.dpr)), 0, frame.dpr, theme);
    painter.restore();
    LabelPlaces places;
    if (input.reserved) {
        drawReserved(painter, input, frame, scale, theme);
    }
    if (input.budget) {
        drawBudget(painter, input, frame, scale, places, theme);
    }
    for (const base::OutOfMemoryEvent& failure : input.failures) {
        drawFailure(painter, input, frame, scale, failure, places, theme);
    }
    if (input.peak) {
        drawPeak(painter, input, frame, scale, places, theme);
    }
    if (input.labels) {
        drawLabels(painter, *input.model, runs, frame, places, theme);
    }
    return image;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/stack_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr int kHatchHeight = 8, kHatchWidth = 2, kLineHeight = 3;

bool shown(const std::set<int>& only, std::size_t layer) {
    return only.empty() || only.contains(static_cast<int>(layer));
}

/// Runs of one layer; `below` holds the height of what lies under it, per column, and grows by the layer.
std::vector<StackRun> layerRuns(const StackModel& model, std::size_t layer, std::vector<std::uint64_t>& below,
                                double perByte, int height) {
    std::vector<StackRun> runs;
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
std::vector<QRect> hatchRects(const std::vector<StackRun>& runs, int left, int minHeight, int minWidth) {
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
std::optional<QRectF> labelPlace(const std::vector<StackRun>& runs, double width, double height) {
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

} // namespace

void drawStackLabels(QPainter& painter, const StackModel& model, const std::vector<std::vector<StackRun>>& runs,
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
            for (const StackRun& run : runs[layer]) {
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

std::vector<std::vector<StackRun>> stackRuns(const StackInput& input, double perByte, int height) {
    const StackModel& model = *input.model;
    std::vector<std::uint64_t> below(model.columns.size(), 0);
    std::vector<std::vector<StackRun>> runs(model.layers.size());
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        if (shown(input.only, layer)) {
            runs[layer] = layerRuns(model, layer, below, perByte, height);
        }
    }
    return runs;
}

void drawStackRuns(QPainter& painter, const StackInput& input, const std::vector<std::vector<StackRun>>& runs, int left,
                   int top, double dpr, const ThemeTokens& theme) {
    for (std::size_t layer = 0; layer < runs.size(); ++layer) {
        if (runs[layer].empty()) {
            continue;
        }
        const CategoryStyle style = layerStyle(input.model->layers[layer], theme);
        for (const StackRun& run : runs[layer]) {
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
        for (const StackRun& run : runs[layer]) {
            if (run.bottom - run.top >= kLineHeight * dpr) {
                painter.fillRect(QRect(left + run.x0, top + run.top, run.x1 - run.x0, line), edge);
            }
        }
    }
}

} // namespace vitrine::ui

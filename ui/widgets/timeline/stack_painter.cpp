// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/stack_painter.h"

#include <algorithm>
#include <cmath>

#include "ui/widgets/timeline/stack_marks.h"
#include "ui/widgets/timeline/stack_runs.h"

namespace vitrine::ui {

std::vector<StackSpan> stackSpans(const StackModel& model, std::size_t column, const std::set<int>& only) {
    std::vector<StackSpan> spans;
    std::uint64_t at = 0;
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        const bool shown = only.empty() || only.contains(static_cast<int>(layer));
        const std::uint64_t bytes = shown ? model.value(column, layer) : 0;
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
        const std::uint64_t needed = failure.reserved + std::min(failure.requested, UINT64_MAX / 4);
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
    const auto runs = stackRuns(input, static_cast<double>(height) / static_cast<double>(scale.top), height);
    painter.save();
    painter.scale(1 / dpr, 1 / dpr);
    drawStackRuns(painter, input, runs, static_cast<int>(std::lround(plot.left() * dpr)),
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
    const auto runs = stackRuns(input, static_cast<double>(height) / static_cast<double>(scale.top), height);
    painter.save();
    painter.setClipRect(plot);
    painter.scale(1 / frame.dpr, 1 / frame.dpr);
    drawStackRuns(painter, input, runs, static_cast<int>(std::lround(plot.left() * frame.dpr)), 0, frame.dpr, theme);
    painter.restore();
    LabelPlaces places;
    drawStackMarks(painter, input, frame, scale, places, theme);
    if (input.labels) {
        drawStackLabels(painter, *input.model, runs, frame, places, theme);
    }
    return image;
}

} // namespace vitrine::ui

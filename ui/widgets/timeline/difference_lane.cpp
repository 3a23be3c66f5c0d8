// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/difference_lane.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

double changeOf(const profiler::DifferenceColumn& column, std::size_t category) {
    return static_cast<double>(column.b->atMax[category]) - static_cast<double>(column.a->atMax[category]);
}

DifferenceSpan spanOf(const profiler::DifferenceColumn& column) {
    DifferenceSpan span;
    for (std::size_t i = 0; column.a && column.b && i < column.a->atMax.size(); ++i) {
        const double change = changeOf(column, i);
        (change > 0 ? span.above : span.below) += std::abs(change);
    }
    return span;
}

} // namespace

DifferenceSpan differenceSpan(const std::vector<profiler::DifferenceColumn>& columns) {
    DifferenceSpan most;
    for (const profiler::DifferenceColumn& column : columns) {
        const DifferenceSpan span = spanOf(column);
        most = {std::max(most.above, span.above), std::max(most.below, span.below)};
    }
    return most;
}

QImage paintDifference(const DifferenceInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    constexpr double kMargin = 8;
    QImage image = frame.canvas(theme.canvas);
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    const DifferenceSpan span = differenceSpan(input.columns);
    const double whole = span.above + span.below;
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double room = std::max(1.0, plot.height() - 2 * kMargin);
    const double zero = whole > 0 ? kMargin + room * span.above / whole : plot.height() / 2;
    const auto label = [&](double y, const QString& text) {
        drawText(painter, QRectF(0, std::clamp(y - 8, 0.0, plot.height() - 16), frame.gutter - 6, 16),
                 Qt::AlignRight | Qt::AlignVCenter, text, theme.text2, font);
    };
    for (std::size_t i = 0; whole > 0 && i < input.columns.size(); ++i) {
        const profiler::DifferenceColumn& column = input.columns[i];
        double up = zero, down = zero;
        for (std::size_t category = 0; column.a && column.b && category < column.a->atMax.size(); ++category) {
            const double change = changeOf(column, category), pixels = std::abs(change) / whole * room;
            if (pixels <= 0) {
                continue;
            }
            up -= change > 0 ? pixels : 0;
            const QRectF box(plot.left() + static_cast<double>(i) / frame.dpr, change > 0 ? up : down, 1 / frame.dpr,
                             pixels);
            painter.fillRect(box, theme.category(static_cast<base::MemoryCategory>(category)).fill);
            down += change < 0 ? pixels : 0;
        }
    }
    hairline(painter, plot.left(), plot.right(), zero, theme.line2);
    label(zero, QStringLiteral("0"));
    // A side of a few pixels has no room for its own number.
    if (zero - kMargin > 16) {
        label(kMargin, signedBytesText(std::llround(span.above)));
    }
    if (plot.height() - kMargin - zero > 16) {
        label(plot.height() - kMargin, signedBytesText(-std::llround(span.below)));
    }
    return image;
}

DifferenceLane::DifferenceLane(const QString& title, TimeCursor* time, QWidget* parent) : Lane(title, time, parent) {
    setPlotHeight(64, 1);
    setMostPlotHeight(124);
}

void DifferenceLane::setRuns(TimelinePtr a, TimelinePtr b, std::shared_ptr<const profiler::Alignment> alignment) {
    a_ = std::move(a);
    b_ = std::move(b);
    alignment_ = std::move(alignment);
    invalidate();
}

QImage DifferenceLane::paint(const PlotFrame& frame) {
    DifferenceInput input;
    if (a_ && b_ && alignment_) {
        input.columns =
            profiler::difference(*a_, *b_, *alignment_, axis().range().begin, axis().range().end, frame.columns());
    }
    return paintDifference(input, frame, themeTokens());
}

void DifferenceLane::paintOver(QPainter& painter, const PlotFrame&) {
    paintCursor(painter, plotRect());
}

QString DifferenceLane::spoken() const {
    const auto at = time()->cursor();
    const auto a = at && alignment_ && a_ && b_ ? alignment_->timeInA(*at) : std::nullopt;
    const auto b = at && alignment_ && a_ && b_ ? alignment_->timeInB(*at) : std::nullopt;
    if (!a || !b) {
        return {};
    }
    const base::CategoryBytes left = a_->memory().at(*a), right = b_->memory().at(*b);
    QStringList parts;
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (left[i] != right[i]) {
            parts << QStringLiteral("%1 %2").arg(textOf(base::categoryName(static_cast<base::MemoryCategory>(i))),
                                                 signedBytesText(static_cast<std::int64_t>(right[i] - left[i])));
        }
    }
    return tr("B − A: %1").arg(parts.isEmpty() ? tr("the same") : parts.join(QStringLiteral(", ")));
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/compare_lane.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr double kMarkWidth = 20, kMarkHeight = 16, kMarkEvery = 140;

using Column = profiler::DifferenceColumn;

/// Of B − A.
int signOf(const Column& column) {
    if (!column.a || !column.b || column.a->maxTotal == column.b->maxTotal) {
        return 0;
    }
    return column.b->maxTotal < column.a->maxTotal ? -1 : 1;
}

void drawLine(QPainter& painter, const CompareInput& input, bool a, const QRectF& plot, const ByteScale& scale,
              double dpr, const QPen& pen) {
    painter.setPen(pen);
    QPolygonF line;
    const auto flush = [&] {
        if (line.size() > 1) {
            painter.drawPolyline(line);
        }
        line.clear();
    };
    for (std::size_t i = 0; i < input.columns.size(); ++i) {
        const auto& side = a ? input.columns[i].a : input.columns[i].b;
        if (!side) {
            flush();
            continue;
        }
        const double y =
            std::clamp(plot.top() + scale.y(static_cast<double>(side->maxTotal)), plot.top() + 1, plot.bottom() - 1);
        const QPointF point(plot.left() + (static_cast<double>(i) + 0.5) / dpr, y);
        if (!line.isEmpty() && line.back().y() != y) {
            line << QPointF(point.x(), line.back().y()); // totals change at once
        }
        line << point;
    }
    flush();
}

/// ▲ or ▼ where the difference has room for it, every 140 px.
void drawMarks(QPainter& painter, const CompareInput& input, const QRectF& plot, const ByteScale& scale, double dpr,
               const ThemeTokens& theme) {
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const auto every = static_cast<std::size_t>(kMarkEvery * dpr),
               reach = static_cast<std::size_t>(kMarkWidth / 2 * dpr);
    for (std::size_t middle = every / 2; middle + reach < input.columns.size(); middle += every) {
        const int sign = signOf(input.columns[middle]);
        double high = plot.top(), low = plot.bottom();
        bool room = sign != 0;
        for (std::size_t i = middle - reach; room && i <= middle + reach; ++i) {
            const Column& column = input.columns[i];
            room = signOf(column) == sign;
            if (room) {
                const auto [less, more] = std::minmax(column.a->maxTotal, column.b->maxTotal);
                high = std::max(high, plot.top() + scale.y(static_cast<double>(more)));
                low = std::min(low, plot.top() + scale.y(static_cast<double>(less)));
            }
        }
        if (room && low - high >= kMarkHeight) {
            const double x = plot.left() + static_cast<double>(middle) / dpr;
            drawText(painter, QRectF(x - kMarkWidth / 2, high, kMarkWidth, low - high), Qt::AlignCenter,
                     sign < 0 ? QStringLiteral("▼") : QStringLiteral("▲"), sign < 0 ? theme.good : theme.bad, font);
        }
    }
}

} // namespace

QImage paintCompare(const CompareInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    QImage image = frame.canvas(theme.canvas);
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    const ByteScale scale = byteScale(input.top, plot.height());
    for (std::size_t i = 0; i < input.columns.size(); ++i) {
        const int sign = signOf(input.columns[i]);
        if (sign == 0) {
            continue;
        }
        const auto [less, more] = std::minmax(input.columns[i].a->maxTotal, input.columns[i].b->maxTotal);
        const double high = plot.top() + scale.y(static_cast<double>(more)),
                     low = plot.top() + scale.y(static_cast<double>(less));
        painter.fillRect(
            QRectF(plot.left() + static_cast<double>(i) / frame.dpr, high, 1 / frame.dpr, std::max(1.0, low - high)),
            sign < 0 ? theme.goodFill : theme.badFill);
    }
    drawByteScale(painter, frame, scale, theme);
    QPen b(theme.compareB, 1.5);
    b.setDashPattern({5 / 1.5, 3 / 1.5});
    b.setCapStyle(Qt::FlatCap);
    drawLine(painter, input, false, plot, scale, frame.dpr, b);
    drawLine(painter, input, true, plot, scale, frame.dpr, QPen(theme.compareA, 1.5));
    drawMarks(painter, input, plot, scale, frame.dpr, theme);
    return image;
}

CompareLane::CompareLane(const QString& title, TimeCursor* time, QWidget* parent) : Lane(title, time, parent) {
    setPlotHeight(96, 1);
}

void CompareLane::setRuns(TimelinePtr a, TimelinePtr b, std::shared_ptr<const profiler::Alignment> alignment) {
    a_ = std::move(a);
    b_ = std::move(b);
    alignment_ = std::move(alignment);
    top_ = 1;
    for (const TimelinePtr& timeline : {a_, b_}) {
        if (timeline) {
            top_ = std::max(top_, timeline->memory().peak(timeline->begin(), timeline->end()).maxTotal);
        }
    }
    invalidate();
}

QImage CompareLane::paint(const PlotFrame& frame) {
    CompareInput input;
    input.top = top_;
    if (a_ && b_ && alignment_) {
        input.columns =
            profiler::difference(*a_, *b_, *alignment_, axis().range().begin, axis().range().end, frame.columns());
    }
    return paintCompare(input, frame, themeTokens());
}

void CompareLane::paintOver(QPainter& painter, const PlotFrame&) {
    paintCursor(painter, plotRect());
}

QString CompareLane::spoken() const {
    const auto at = time()->cursor();
    if (!at || !alignment_ || !a_ || !b_) {
        return {};
    }
    const auto total = [](const TimelinePtr& timeline,
                          std::optional<base::TimeNs> when) -> std::optional<std::uint64_t> {
        if (!when) {
            return std::nullopt;
        }
        const base::CategoryBytes split = timeline->memory().at(*when);
        return std::accumulate(split.begin(), split.end(), std::uint64_t{0});
    };
    const auto a = total(a_, alignment_->timeInA(*at)), b = total(b_, alignment_->timeInB(*at));
    QString text = tr("Cursor %1: A %2, B %3").arg(instantText(*at), bytesText(a), bytesText(b));
    if (a && b) {
        text += tr(", B − A %1").arg(signedBytesText(static_cast<std::int64_t>(*b) - static_cast<std::int64_t>(*a)));
    }
    return text;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/trace_painter.h"

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr double kSmallest = 2;              ///< px from which on a span is a box of its own
constexpr double kMerge = 3;                 ///< px between crowds that become one
constexpr double kTracePainterLabelled = 34; ///< px from which on a box has room for a name
constexpr double kZigZag = 3;                ///< px from tooth to valley

struct Fill {
    QColor ground, ink, edge;
};

Fill fillOf(const TraceTrack& track, const TraceSpan& span, const ThemeTokens& theme) {
    if (track.kind == TraceTrack::Kind::Kernels && span.category >= 0) {
        const CategoryStyle& style = theme.categories[static_cast<std::size_t>(span.category)];
        return {style.fill, style.ink, {}};
    }
    if (track.kind == TraceTrack::Kind::Scopes) {
        // Steps are the darkest, what is inside them is lighter: as in the bands above.
        return {span.category >= 0 ? theme.raised
                : span.number >= 0 ? theme.hover
                                   : theme.pressed,
                theme.text1, span.category >= 0 ? theme.line1 : QColor()};
    }
    return {theme.pressed, theme.text1, theme.line2};
}

/// One tooth of the zig-zag as a texture: a line of a thousand teeth costs as much as a rectangle.
QBrush zigZag(const QColor& color, double dpr) {
    QImage tile(QSizeF(2 * kZigZag * dpr, (2 * kZigZag + 2) * dpr).toSize(), QImage::Format_ARGB32_Premultiplied);
    tile.fill(Qt::transparent);
    QPainter painter(&tile);
    painter.scale(dpr, dpr);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(color, 1));
    const double low = 2 * kZigZag + 1;
    const QPointF line[] = {{-kZigZag, 1}, {0, low}, {kZigZag, 1}, {2 * kZigZag, low}, {3 * kZigZag, 1}};
    painter.drawPolyline(line, 5);
    painter.end();
    QBrush brush(tile);
    brush.setTransform(QTransform::fromScale(1 / dpr, 1 / dpr));
    return brush;
}

/// Several neighbouring spans that are too small to draw.
struct Crowd {
    double from = 0, to = -1;
    TracePlace first;
    std::size_t count = 0;
};

class RowPainter {
public:
    RowPainter(const TraceInput& input, const PlotFrame& frame, const ThemeTokens& theme, QPainter& painter,
               TracePicture& picture)
        : input_(input), theme_(theme), painter_(painter), picture_(picture), plot_(frame.plot()),
          track_(input.trace->tracks[input.track]), font_(Theme::instance().font(TypeRole::Axis)),
          teeth_(zigZag(theme.line2, frame.dpr)) {}

    void paint(std::size_t row) {
        row_ = row;
        top_ = static_cast<double>(row) * kTraceRowHeight + 1;
        const TraceRow& spans = track_.rows[row];
        const AxisMap& axis = input_.axis;
        std::size_t i = spans.firstEndingAfter(axis.range().begin);
        while (i < spans.spans.size() && spans.spans[i].begin < axis.range().end) {
            const double a = axis.x(spans.spans[i].begin), b = axis.x(spans.spans[i].end);
            if (b - a >= kSmallest) {
                flush();
                box(spans.spans[i], {row, i}, a, b);
                ++i;
                continue;
            }
            // All that ends within the next pixels of a box is smaller than one.
            const base::TimeNs until = std::min(axis.time(std::max(0.0, a) + kSmallest), axis.range().end);
            const std::size_t next = std::max(i + 1, spans.firstEndingAfter(until, i));
            join(a, axis.x(spans.spans[next - 1].end), {row, i}, next - i);
            i = next;
        }
        flush();
    }

private:
    void join(double a, double b, TracePlace first, std::size_t count) {
        if (crowd_.count > 0 && a > crowd_.to + kMerge) {
            flush();
        }
        if (crowd_.count == 0) {
            crowd_ = {a, b, first, 0};
        }
        crowd_.to = std::max(crowd_.to, b);
        crowd_.count += count;
    }

    QRectF rect(double a, double b) const {
        const double left = plot_.left() + std::max(0.0, std::round(a));
        const double right = plot_.left() + std::min(plot_.width(), std::round(b));
        return {left, top_, std::max(1.0, right - left), kTraceRowHeight - 2.0};
    }

    void box(const TraceSpan& span, TracePlace place, double a, double b) {
        QRectF area = rect(a, b);
        const Fill fill = fillOf(track_, span, theme_);
        // A gap of one pixel separates neighbours; it never eats a box.
        painter_.fillRect(area.width() > 3 ? area.adjusted(0, 0, -1, 0) : area, fill.ground);
        if (fill.edge.isValid() && area.width() > 4) {
            painter_.setPen(fill.edge);
            painter_.setBrush(Qt::NoBrush);
            painter_.drawRect(area.adjusted(0.5, 0.5, -1.5, -0.5));
        }
        if (area.width() >= kTracePainterLabelled) {
            drawText(painter_, area.adjusted(5, 0, -4, 0), Qt::AlignVCenter, traceName(*input_.timeline, span),
                     fill.ink, font_);
        }
        picture_.hits.push_back({area, place, 1});
        ++picture_.drawn;
    }

    void flush() {
        if (crowd_.count == 0) {
            return;
        }
        const QRectF area = rect(crowd_.from, std::max(crowd_.to, crowd_.from + 1));
        painter_.fillRect(area, theme_.line0);
        const double middle = area.center().y();
        if (area.width() >= 2 * kZigZag) {
            const QRectF teeth(area.left(), middle - kZigZag - 1, area.width(), 2 * kZigZag + 2);
            painter_.setBrushOrigin(teeth.topLeft());
            painter_.fillRect(teeth, teeth_);
        } else {
            painter_.fillRect(QRectF(area.left(), middle - kZigZag, area.width(), 2 * kZigZag), theme_.line2);
        }
        const QString count = countText(static_cast<std::int64_t>(crowd_.count));
        const double width = textWidth(count, font_) + 8;
        if (area.width() >= width + 12) {
            const QRectF place(std::round(area.center().x() - width / 2), top_, width, area.height());
            painter_.fillRect(place, theme_.line0);
            drawText(painter_, place, Qt::AlignCenter, count, theme_.text2, font_);
        }
        picture_.hits.push_back({area, crowd_.first, crowd_.count});
        picture_.small += crowd_.count;
        crowd_ = {};
    }

    const TraceInput& input_;
    const ThemeTokens& theme_;
    QPainter& painter_;
    TracePicture& picture_;
    const QRectF plot_;
    const TraceTrack& track_;
    const QFont font_;
    const QBrush teeth_;
    std::size_t row_ = 0;
    double top_ = 0;
    Crowd crowd_;
};

} // namespace

TracePicture paintTrace(const TraceInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    TracePicture picture;
    picture.image = frame.canvas(theme.canvas);
    QPainter painter(&picture.image);
    if (!input.trace || !input.timeline || input.track >= input.trace->tracks.size()) {
        return picture;
    }
    const TraceTrack& track = input.trace->tracks[input.track];
    const QFont font = Theme::instance().font(TypeRole::Axis);
    RowPainter rows(input, frame, theme, painter, picture);
    for (std::size_t row = 0; row < track.rows.size(); ++row) {
        drawText(painter, QRectF(8, static_cast<double>(row) * kTraceRowHeight, frame.gutter - 12, kTraceRowHeight),
                 Qt::AlignVCenter, track.rows[row].title, theme.text3, font);
        rows.paint(row);
    }
    return picture;
}

QRectF traceRect(const TraceInput& input, TracePlace place, double gutter) {
    const TraceSpan& span = input.trace->tracks[input.track].rows[place.row].spans[place.index];
    const double a = input.axis.x(span.begin), b = input.axis.x(span.end);
    return {gutter + a, static_cast<double>(place.row) * kTraceRowHeight + 1, std::max(1.0, b - a),
            kTraceRowHeight - 2.0};
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/slot_painter.h"

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr double kSlotPainterLabelled = 30; ///< px from which on a stretch has room for its request's number
constexpr double kLabelRow = 10;            ///< px that a row needs for it
constexpr double kHatchRow = 6;             ///< px that a row needs for a hatch to be one
constexpr double kBorderRun = 4;            ///< px of both neighbours from which on a line parts two requests
constexpr double kLabelEvery = 14;

QColor setColor(const ThemeTokens& theme, const char* name) {
    const auto found = theme.sets.find(QString::fromLatin1(name));
    return found == theme.sets.end() ? theme.line2 : found->second;
}

CategoryStyle styled(const ThemeTokens& theme, const char* name, Hatch hatch) {
    CategoryStyle style;
    style.fill = setColor(theme, name);
    style.ink = contrastRatio(style.fill, Qt::white) >= 4.5 ? QColor(Qt::white) : QColor(0x10, 0x12, 0x15);
    style.hatch = hatch;
    return style;
}

QRgb blended(const QColor& ground, const QColor& ink, double part) {
    const auto mix = [part](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * part)); };
    return qRgb(mix(ground.red(), ink.red()), mix(ground.green(), ink.green()), mix(ground.blue(), ink.blue()));
}

/// A state's pixels: its fill, and lines across it.
struct Pixels {
    QRgb fill = 0, line = 0;
    Hatch hatch = Hatch::None;
};

using StatePixels = std::array<Pixels, base::kSlotStateCount>;

StatePixels statePixels(const ThemeTokens& theme) {
    StatePixels all;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const CategoryStyle style = slotStyle(static_cast<base::SlotState>(i), theme);
        const bool light = style.ink == QColor(Qt::white);
        all[i] = {style.fill.rgb(), blended(style.fill, style.ink, light ? 0.34 : 0.26), style.hatch};
    }
    return all;
}

/// One row of device pixels from x0 to x1.
void fillLine(QRgb* line, int x0, int x1, int y, const Pixels& pixels, bool hatched, int tile, int thick) {
    if (!hatched || pixels.hatch == Hatch::None) {
        std::fill(line + x0, line + x1, pixels.fill);
        return;
    }
    const int shift = pixels.hatch == Hatch::BackDiagonal ? tile - y % tile : y % tile;
    for (int x = x0; x < x1; ++x) {
        line[x] = (x + shift) % tile < thick ? pixels.line : pixels.fill;
    }
}

class SlotRowPainter {
public:
    SlotRowPainter(QImage& image, const PlotFrame& frame, const ThemeTokens& theme)
        : image_(image), pixels_(statePixels(theme)), canvas_(theme.canvas.rgb()), dpr_(frame.dpr),
          left_(static_cast<int>(std::lround(frame.gutter * frame.dpr))),
          tile_(static_cast<int>(std::lround(6 * frame.dpr))),
          thick_(static_cast<int>(std::max(1.0, std::round(1.4 * frame.dpr)))) {}

    /// `parted`: lines stand between requests, as between rows. Where rows are too thin for gaps those would be all one
    /// sees.
    void paint(const QRectF& row, bool parted, const std::vector<SlotRun>& runs) {
        const int y0 = std::clamp(static_cast<int>(std::lround(row.top() * dpr_)), 0, image_.height());
        const int y1 =
            std::clamp(std::max(y0 + 1, static_cast<int>(std::lround(row.bottom() * dpr_))), 0, image_.height());
        const bool hatched = row.height() >= kHatchRow;
        const int border = static_cast<int>(std::max(1.0, std::round(dpr_)));
        for (int y = y0; y < y1; ++y) {
            auto* line = reinterpret_cast<QRgb*>(image_.scanLine(y));
            for (const SlotRun& run : runs) {
                fillLine(line, left_ + run.from, std::min(left_ + run.to, image_.width()), y,
                         pixels_[static_cast<std::size_t>(run.state)], hatched, tile_, thick_);
            }
            for (std::size_t i = 1; parted && i < runs.size(); ++i) {
                const SlotRun &before = runs[i - 1], &run = runs[i];
                const int least = static_cast<int>(kBorderRun * dpr_);
                if (run.from == before.to && run.request != before.request && run.request >= 0 && before.request >= 0 &&
                    run.to - run.from >= border && before.to - before.from >= least) {
                    std::fill_n(line + left_ + run.from, std::min(border, image_.width() - left_ - run.from), canvas_);
                }
            }
        }
    }

private:
    QImage& image_;
    StatePixels pixels_;
    QRgb canvas_;
    double dpr_;
    int left_, tile_, thick_;
};

struct Label {
    QRectF box;
    std::int32_t request;
};

/// Numbers stand where a request's stretch begins, prompt and answer together.
void collectLabels(const std::vector<SlotRun>& runs, const QRectF& row, const PlotFrame& frame,
                   std::vector<Label>& labels) {
    for (std::size_t i = 0; i < runs.size();) {
        std::size_t next = i + 1;
        while (next < runs.size() && runs[next].request == runs[i].request && runs[next].from == runs[next - 1].to) {
            ++next;
        }
        // The number stands on the stretch of decode: the others are hatched or too bright for it.
        for (std::size_t k = i; k < next && runs[i].request >= 0; ++k) {
            const double width = (runs[k].to - runs[k].from) / frame.dpr;
            if (runs[k].state == base::SlotState::Decode && width >= kSlotPainterLabelled) {
                labels.push_back(
                    {QRectF(frame.gutter + runs[k].from / frame.dpr + 4, row.top(), width - 6, row.height()),
                     runs[k].request});
                break;
            }
        }
        i = next;
    }
}

void paintNumbers(QPainter& painter, const SlotRows& rows, const PlotFrame& frame, const ThemeTokens& theme) {
    int every = 1;
    for (const int step : {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}) {
        every = step;
        if (step * rows.pitch >= (step == 1 ? kLabelEvery : 28)) {
            break;
        }
    }
    const QFont font = Theme::instance().font(TypeRole::Axis);
    for (int slot = 0; slot < rows.slotCount; slot += every) {
        const QRectF row = rows.row(slot, 0, frame.gutter - 8);
        drawText(painter, QRectF(0, row.center().y() - 8, frame.gutter - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                 QString::number(slot), theme.text3, font);
    }
}

void paintEnds(QPainter& painter, const SlotInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    const double own = plot.left() + input.axis.x(input.map->length());
    const auto inside = [&](double x) { return x >= plot.left() && x <= plot.right() + 1; };
    if (inside(own)) {
        plumbline(painter, std::min(own, plot.right() - 1), plot.top() + 1, plot.bottom() - 1, theme.text1);
    }
    if (!input.gain) {
        return;
    }
    const double other = plot.left() + input.axis.x(input.gain->otherEnd);
    if (inside(other) && other - own > 2) {
        QPen pen(theme.text3, 1);
        pen.setDashPattern({3, 3});
        painter.setPen(pen);
        const double x = std::floor(std::min(other, plot.right() - 1)) + 0.5;
        painter.drawLine(QPointF(x, plot.top() + 1), QPointF(x, plot.bottom() - 1));
    }
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const double text = textWidth(input.gain->text, font);
    if (input.gain->text.isEmpty() || !inside(own) || !inside(other) || other - own < text + 60) {
        return;
    }
    const double y = std::floor(plot.center().y()) + 0.5;
    const double middle = (own + other) / 2;
    painter.setPen(QPen(theme.good, 1));
    painter.drawLine(QPointF(own + 4, y), QPointF(middle - text / 2 - 8, y));
    painter.drawLine(QPointF(middle + text / 2 + 8, y), QPointF(other - 3, y));
    painter.setRenderHint(QPainter::Antialiasing);
    painter.drawLine(QPointF(own + 4, y), QPointF(own + 9, y - 4));
    painter.drawLine(QPointF(own + 4, y), QPointF(own + 9, y + 4));
    painter.setRenderHint(QPainter::Antialiasing, false);
    drawText(painter, QRectF(middle - text / 2 - 2, y - 9, text + 6, 18), Qt::AlignCenter, input.gain->text, theme.good,
             font);
}

void paintPiece(QPainter& painter, const RequestPiece& piece, const QRectF& row, const RequestInput& input,
                const PlotFrame& frame, const ThemeTokens& theme) {
    const QRectF plot = frame.plot();
    if (piece.end < input.axis.range().begin || piece.begin > input.axis.range().end) {
        return;
    }
    const double a = plot.left() + std::clamp(input.axis.x(piece.begin), 0.0, plot.width());
    const double b = plot.left() + std::clamp(input.axis.x(piece.end), 0.0, plot.width());
    const CategoryStyle style = requestStyle(piece.state, theme);
    const double width = std::max(b - a, 1 / frame.dpr);
    if (piece.state == RequestState::Queued) {
        const double thick = std::min(3.0, row.height());
        painter.fillRect(QRectF(a, std::floor(row.center().y() - thick / 2), width, thick), style.fill);
        return;
    }
    const QRectF box(a, row.top(), width, row.height());
    painter.fillRect(box, style.fill);
    if (style.hatch != Hatch::None && width >= 3 && row.height() >= kHatchRow) {
        painter.fillRect(box, categoryHatch(style, frame.dpr));
    }
}

/// A cross where a request ended without an answer, with the word where there is room.
void paintBadEnd(QPainter& painter, const BatchRequest& request, const QRectF& row, const RequestInput& input,
                 const PlotFrame& frame, const ThemeTokens& theme) {
    const bool refused = request.phase == base::RequestChange::Refused;
    if (!refused && request.phase != base::RequestChange::Cancelled) {
        return;
    }
    const QRectF plot = frame.plot();
    const double x = plot.left() + input.axis.x(input.map->place(request.end));
    if (x < plot.left() - 1 || x > plot.right()) {
        return;
    }
    const double arm = std::clamp(row.height() / 2 - 1, 2.0, 4.0);
    const QPointF middle(std::floor(x + arm + 2) + 0.5, std::floor(row.center().y()) + 0.5);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.bad, 1.5));
    painter.drawLine(middle + QPointF(-arm, -arm), middle + QPointF(arm, arm));
    painter.drawLine(middle + QPointF(-arm, arm), middle + QPointF(arm, -arm));
    painter.setRenderHint(QPainter::Antialiasing, false);
    const QString word = refused ? QObject::tr("refused") : QObject::tr("cancelled");
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double left = middle.x() + arm + 4, wide = textWidth(word, font) + 2;
    if (row.height() >= kLabelRow && left + wide <= plot.right()) {
        drawText(painter, QRectF(left, row.top() - 2, wide, row.height() + 4), Qt::AlignVCenter, word, theme.bad, font);
    }
}

} // namespace

CategoryStyle slotStyle(base::SlotState state, const ThemeTokens& theme) {
    switch (state) {
    case base::SlotState::Prefill:
        return styled(theme, "requests.prefill", Hatch::None);
    case base::SlotState::Decode:
        return styled(theme, "requests.decode", Hatch::None);
    case base::SlotState::Padding:
        return styled(theme, "requests.padding", Hatch::BackDiagonal);
    case base::SlotState::Preempted:
        return styled(theme, "requests.preempted", Hatch::ForwardDiagonal);
    case base::SlotState::Idle:
        break;
    }
    return styled(theme, "requests.idle", Hatch::None);
}

CategoryStyle requestStyle(RequestState state, const ThemeTokens& theme) {
    switch (state) {
    case RequestState::Prefill:
        return slotStyle(base::SlotState::Prefill, theme);
    case RequestState::Decode:
        return slotStyle(base::SlotState::Decode, theme);
    case RequestState::Preempted:
        return slotStyle(base::SlotState::Preempted, theme);
    case RequestState::Padding:
        return slotStyle(base::SlotState::Padding, theme);
    case RequestState::Idle:
        return slotStyle(base::SlotState::Idle, theme);
    case RequestState::Queued:
        break;
    }
    return styled(theme, "requests.queued", Hatch::None);
}

int SlotRows::slotAt(double y) const {
    const int slot = static_cast<int>(std::floor((y - top) / pitch));
    return y >= top && slot < slotCount ? slot : -1;
}

SlotRows slotRows(int slotCount, double height) {
    SlotRows rows;
    rows.slotCount = slotCount;
    rows.top = height > 40 ? kSlotsTop : 0;
    rows.pitch = std::max(1.0, height - 2 * rows.top) / std::max(1, slotCount);
    return rows;
}

QImage paintSlots(const SlotInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    QImage image = frame.canvas(theme.canvas);
    if (!input.map || image.isNull()) {
        return image;
    }
    const SlotRows rows = slotRows(input.map->side().slotCount, frame.size.height());
    std::vector<Label> labels;
    {
        SlotRowPainter painter(image, frame, theme);
        std::vector<SlotRun> runs;
        const AxisColumns columns(input.axis, frame.columns());
        int painted = -1; // more slots than rows of pixels: one for each row
        for (int slot = 0; slot < rows.slotCount; ++slot) {
            const QRectF row = rows.row(slot, frame.gutter, frame.plot().width());
            const int line = static_cast<int>(std::lround(row.top() * frame.dpr));
            if (line == painted) {
                continue;
            }
            painted = line;
            input.map->slotRuns(slot, columns, runs);
            painter.paint(row, rows.gap() > 0, runs);
            if (row.height() >= kLabelRow) {
                collectLabels(runs, row, frame, labels);
            }
        }
    }
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QColor ink = slotStyle(base::SlotState::Decode, theme).ink;
    for (const Label& label : labels) {
        drawText(painter, label.box.adjusted(0, -2, 0, 2), Qt::AlignVCenter, QString::number(label.request), ink, font);
    }
    paintNumbers(painter, rows, frame, theme);
    paintEnds(painter, input, frame, theme);
    return image;
}

double requestPitch(std::size_t requests, double height) {
    constexpr double kTallest = 20;
    return std::clamp(std::floor((height - 6) / static_cast<double>(std::max<std::size_t>(1, requests))), kRequestPitch,
                      kTallest);
}

std::vector<RequestPiece> seenPieces(std::span<const RequestPiece> pieces, const AxisColumns& columns) {
    std::vector<RequestPiece> seen;
    const base::TimeNs end = columns.range(columns.count() - 1).end;
    const auto startingAt = [&](auto from, base::TimeNs time) {
        return std::partition_point(from, pieces.end(),
                                    [time](const RequestPiece& piece) { return piece.begin < time; });
    };
    auto at = startingAt(pieces.begin(), columns.begin());
    at -= at != pieces.begin() ? 1 : 0; // it may reach into the first column
    while (at != pieces.end() && at->begin <= end) {
        seen.push_back(*at);
        const int column = std::clamp(columns.column(at->begin), 0, columns.count() - 1);
        const auto next = startingAt(at + 1, columns.range(column).end);
        at = next - at > 2 ? next - 1 : at + 1;
    }
    return seen;
}

QImage paintRequests(const RequestInput& input, const PlotFrame& frame, const ThemeTokens& theme) {
    QImage image = frame.canvas(theme.canvas);
    if (!input.map) {
        return image;
    }
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const AxisColumns columns(input.axis, frame.columns());
    const std::vector<BatchRequest>& requests = input.map->side().requests;
    const auto count = static_cast<int>(input.only ? input.only->size() : requests.size());
    if (count == 0) {
        drawText(painter, frame.plot(), Qt::AlignCenter, input.none, theme.text3,
                 Theme::instance().font(TypeRole::Table));
    }
    const double pitch = requestPitch(static_cast<std::size_t>(count), frame.size.height());
    const int every = pitch >= kLabelEvery ? 1 : input.only ? 2 : 5;
    for (int at = std::max(0, input.first); at < count; ++at) {
        const double top = 3 + (at - input.first) * pitch;
        if (top + 1 > frame.size.height()) {
            break;
        }
        const std::int32_t request = input.only ? (*input.only)[static_cast<std::size_t>(at)] : at;
        const QRectF row(frame.gutter, top, frame.plot().width(), pitch - 1);
        if (at % every == 0) {
            drawText(painter, QRectF(0, row.center().y() - 8, frame.gutter - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                     QString::number(request), theme.text3, font);
            hairline(painter, row.left(), row.right(), std::floor(row.bottom()), theme.line0);
        }
        for (const RequestPiece& piece : seenPieces(input.map->pieces(request), columns)) {
            paintPiece(painter, piece, row, input, frame, theme);
        }
        paintBadEnd(painter, requests[static_cast<std::size_t>(request)], row, input, frame, theme);
    }
    return image;
}

} // namespace vitrine::ui

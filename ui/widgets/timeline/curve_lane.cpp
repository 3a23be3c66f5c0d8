// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

namespace {

constexpr int kMostLines = 12;
constexpr double kHalved = 44; ///< from here on there is room for a number at half height
constexpr double kTall = 120;  ///< from here on there is room for a grid and for words at the ends of lines

template <class F> void drawGrid(QPainter& painter, const QRectF& plot, const ByteGrid& grid, double gutter, F yOf) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const auto step = static_cast<double>(grid.step);
    for (int i = 1; i <= kMostLines; ++i) {
        const double y = std::floor(yOf(step * i));
        if (y < plot.top() + 6) {
            return;
        }
        hairline(painter, plot.left(), plot.right(), y, t.line0);
        const QString number = QString::number(step * i / static_cast<double>(grid.unit), 'g', 4);
        const bool last = yOf(step * (i + 1)) < plot.top() + 6;
        drawText(painter, QRectF(0, y - 8, gutter - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                 last ? number + QStringLiteral("\u00A0") + QString::fromLatin1(grid.unitName) : number, t.text3, font);
    }
}

/// As a path, without the points inside level parts: dashes of a wide pen start anew at every point of a polyline.
void drawLine(QPainter& painter, const QPolygonF& line) {
    if (line.size() < 2) {
        return;
    }
    QPainterPath path(line.front());
    for (qsizetype i = 1; i < line.size(); ++i) {
        if (i + 1 == line.size() || line[i].y() != line[i - 1].y() || line[i].y() != line[i + 1].y()) {
            path.lineTo(line[i]);
        }
    }
    painter.drawPath(path);
}

} // namespace

CurveLane::CurveLane(const QString& title, TimeCursor* time, QWidget* parent) : Lane(title, time, parent) {
    setPlotHeight(37, 0);
}

void CurveLane::setCurves(std::vector<Curve> curves, double top, bool bytes) {
    curves_ = std::move(curves);
    top_ = std::max(top, 1e-12);
    bytes_ = bytes;
    invalidate();
}

void CurveLane::setTopText(const QString& text, const QString& middle) {
    topText_ = text;
    middleText_ = middle;
    invalidate();
}

void CurveLane::setFailures(std::vector<base::TimeNs> times) {
    failures_ = std::move(times);
    invalidate();
}

QImage CurveLane::paint(const PlotFrame& frame) {
    const ThemeTokens& t = themeTokens();
    QImage image = frame.canvas(t.canvas);
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double air = 4;
    const double room = std::max(1.0, plot.height() - 2 * air);
    const ByteGrid grid = byteGrid(static_cast<std::uint64_t>(std::max(4.0, top_)), 6);
    const QString high = bytes_ ? QString::number(top_ / static_cast<double>(grid.unit), 'f',
                                                  top_ / static_cast<double>(grid.unit) < 10 ? 1 : 0) +
                                      QStringLiteral("\u00A0") + QString::fromLatin1(grid.unitName)
                         : topText_.isEmpty() ? QString::number(top_, 'g', 3)
                                              : topText_;
    hairline(painter, plot.left(), plot.right(), plot.bottom() - 1, t.line0);
    const bool tall = plot.height() >= kTall;
    if (tall && bytes_) {
        drawGrid(painter, plot, grid, frame.gutter,
                 [&](double value) { return plot.bottom() - air - value / top_ * room; });
    } else {
        drawText(painter, QRectF(0, 0, frame.gutter - 8, 14), Qt::AlignRight | Qt::AlignVCenter, high, t.text3, font);
    }
    if (middleText_.size() > 0 && plot.height() >= kHalved) {
        const double y = std::floor(plot.bottom() - air - room / 2);
        hairline(painter, plot.left(), plot.right(), std::floor(plot.bottom() - air - room), t.line0);
        hairline(painter, plot.left(), plot.right(), y, t.line0);
        drawText(painter, QRectF(0, y - 7, frame.gutter - 8, 14), Qt::AlignRight | Qt::AlignVCenter, middleText_,
                 t.text3, font);
    }
    drawText(painter, QRectF(0, plot.bottom() - 14, frame.gutter - 8, 14), Qt::AlignRight | Qt::AlignVCenter,
             QStringLiteral("0"), t.text3, font);
    const int columns = frame.columns();
    for (const Curve& curve : curves_) {
        const auto values = curve.values(axis(), columns);
        QPen pen(curve.color ? curve.color(t) : t.text2, tall ? 1.5 : 1);
        if (curve.dashed) {
            pen.setDashPattern({5 / pen.widthF(), 3 / pen.widthF()});
            pen.setCapStyle(Qt::FlatCap);
        }
        painter.setPen(pen);
        painter.setBrush(Qt::NoBrush);
        QPolygonF line;
        const auto flush = [&] {
            drawLine(painter, line);
            line.clear();
        };
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (!values[i]) {
                flush();
                continue;
            }
            const double part = std::clamp(*values[i] / top_, 0.0, 1.0);
            line << QPointF(plot.left() + (static_cast<double>(i) + 0.5) / frame.dpr,
                            plot.bottom() - air - part * room);
        }
        const QPointF end = line.isEmpty() ? QPointF() : line.back();
        const bool labelled = tall && bytes_ && !line.isEmpty();
        flush();
        if (labelled) {
            const auto last = std::find_if(values.rbegin(), values.rend(), [](const auto& v) { return v.has_value(); });
            const QString text =
                curve.name + QLatin1Char(' ') + bytesText(static_cast<std::uint64_t>(std::max(0.0, **last)));
            const QFont strong = Theme::instance().font(TypeRole::Table, true);
            const double width = textWidth(text, strong) + 2;
            const double y = end.y() > plot.top() + 22 ? end.y() - 19 : end.y() + 3;
            drawText(painter, QRectF(end.x() - width - 8, y, width, 16), Qt::AlignVCenter, text, pen.color(), strong);
        }
    }
    for (const base::TimeNs failure : failures_) {
        const double x = plot.left() + axis().x(failure);
        if (x >= plot.left() && x <= plot.right() + 1) {
            plumbline(painter, std::min(x, plot.right() - 1), plot.top(), plot.bottom(), t.bad);
        }
    }
    return image;
}

QString CurveLane::spoken() const {
    if (!time()->cursor() || axis().width() < 1) {
        return facts();
    }
    QStringList words;
    const int columns = static_cast<int>(axis().width());
    const auto at = static_cast<std::size_t>(std::clamp(axis().x(*time()->cursor()), 0.0, axis().width() - 1));
    for (const Curve& curve : curves_) {
        const auto values = curve.values(axis(), columns);
        if (at < values.size() && values[at]) {
            words << curve.name + QLatin1Char(' ') +
                         (bytes_ ? bytesText(static_cast<std::uint64_t>(std::max(0.0, *values[at])))
                                 : QString::number(*values[at]));
        }
    }
    return tr("Cursor %1. %2.").arg(instantText(*time()->cursor()), words.join(QStringLiteral(", ")));
}

QImage paintSpans(const std::vector<SpanRow>& rows, const AxisMap& axis, int rowHeight, const PlotFrame& frame,
                  const ThemeTokens& theme) {
    QImage image = frame.canvas(theme.canvas);
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const double top = static_cast<double>(r) * rowHeight + 2;
        const double height = rowHeight - 5;
        painter.fillRect(QRectF(plot.left(), top, plot.width(), height), theme.band);
        drawText(painter, QRectF(2, top, frame.gutter - 10, height), Qt::AlignRight | Qt::AlignVCenter, rows[r].title,
                 theme.text2, font);
        double crowdFrom = -1, crowdTo = -1;
        const auto flush = [&] {
            if (crowdFrom >= 0) {
                painter.fillRect(QRectF(crowdFrom, top, std::max(1.0, crowdTo - crowdFrom), height),
                                 freeHatch(theme, 4, frame.dpr));
                crowdFrom = -1;
            }
        };
        for (const SpanRow::Span& span : rows[r].spans) {
            if (span.range.end < axis.range().begin || span.range.begin > axis.range().end) {
                continue;
            }
            const double a = plot.left() + std::max(0.0, axis.x(span.range.begin));
            const double b = plot.left() + std::min(plot.width(), axis.x(span.range.end));
            if (b - a < 2) {
                if (crowdFrom >= 0 && a > crowdTo + 1) {
                    flush();
                }
                crowdFrom = crowdFrom < 0 ? a : crowdFrom;
                crowdTo = b;
                continue;
            }
            flush();
            const QRectF box(std::round(a), top, std::max(1.0, std::round(b - a)), height);
            painter.fillRect(box, theme.pressed);
            painter.setPen(theme.line2);
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
            if (box.width() > 30) {
                drawText(painter, box.adjusted(7, 0, -4, 0), Qt::AlignVCenter, span.label, theme.text1, font);
            }
        }
        flush();
    }
    return image;
}

SpanLane::SpanLane(const QString& title, TimeCursor* time, QWidget* parent) : Lane(title, time, parent) {
    setPlotHeight(rowHeight_, 0);
}

void SpanLane::setRows(std::vector<SpanRow> rows, int rowHeight) {
    rows_ = std::move(rows);
    rowHeight_ = rowHeight;
    setPlotHeight(std::max(1, static_cast<int>(rows_.size())) * rowHeight_ + 2, 0);
}

QString SpanLane::spoken() const {
    QStringList words;
    if (const auto at = time()->cursor()) {
        for (const SpanRow& row : rows_) {
            for (const SpanRow::Span& span : row.spans) {
                if (span.range.contains(*at)) {
                    words << row.title + QLatin1Char(' ') + span.label;
                }
            }
        }
    }
    return words.join(QStringLiteral(", "));
}

QImage SpanLane::paint(const PlotFrame& frame) {
    return paintSpans(rows_, axis(), rowHeight_, frame, themeTokens());
}

} // namespace vitrine::ui

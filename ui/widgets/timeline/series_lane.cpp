// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/series_lane.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kSeriesAir = 8;
constexpr double kRing = 3.5;
constexpr double kMostEndWidth = 56;

} // namespace

void paintRule(QPainter& painter, double x, const QRectF& plot, const ThemeTokens& theme) {
    QPen pen(theme.line2, 1);
    pen.setDashPattern({1, 3});
    painter.setPen(pen);
    const double at = std::floor(x) + 0.5;
    painter.drawLine(QPointF(at, plot.top()), QPointF(at, plot.bottom()));
}

SeriesLane::SeriesLane(const QString& title, const QString& note, TimeCursor* time, QWidget* parent)
    : Lane(title, time, parent), note_(new TextLabel(note, TypeRole::Table, TextColor::Text3, false, this)) {
    addHeaderControl(note_);
}

void SeriesLane::setNote(const QString& note) {
    note_->setText(note);
}

void SeriesLane::setSeries(std::vector<LaneSeries> series, const PlotScale& scale, std::optional<base::TimeNs> same) {
    const bool goesOn = same && scale == scale_ && series.size() == series_.size();
    series_ = std::move(series);
    scale_ = scale;
    goesOn ? invalidateFrom(*same) : invalidate();
}

void SeriesLane::setLimit(std::optional<double> value, const QString& text) {
    if (limit_ != value || limitText_ != text) {
        limit_ = value;
        limitText_ = text;
        invalidate();
    }
}

void SeriesLane::setEnd(std::optional<base::TimeNs> place, const QString& text, bool accent) {
    if (end_ == place && endText_ == text && endAccent_ == accent) {
        return;
    }
    end_&& place ? invalidateFrom(std::min(*end_, *place)) : invalidate();
    end_ = place;
    endText_ = text;
    endAccent_ = accent;
}

void SeriesLane::setRules(std::vector<base::TimeNs> places) {
    if (rules_ != places) {
        rules_ = std::move(places);
        invalidate();
    }
}

QString SeriesLane::spoken() const {
    return spoken_ ? spoken_() : facts();
}

double SeriesLane::yOf(double value, const QRectF& plot) const {
    const double air = std::min(kSeriesAir, plot.height() / 5);
    const double part = (value - scale_.low) / std::max(scale_.high - scale_.low, 1e-300);
    return plot.bottom() - air - std::clamp(part, 0.0, 1.0) * std::max(1.0, plot.height() - 2 * air);
}

QImage SeriesLane::paint(const PlotFrame& frame) {
    const ThemeTokens& t = themeTokens();
    QImage image = frame.canvas(t.canvas);
    QPainter painter(&image);
    paintAll(painter, frame, 0);
    return image;
}

bool SeriesLane::paintFrom(QImage& picture, const PlotFrame& frame, double x) {
    const QRectF part(x, 0, frame.size.width() - x, frame.size.height());
    QPainter painter(&picture);
    painter.setClipRect(part);
    painter.fillRect(part, themeTokens().canvas);
    paintAll(painter, frame, x);
    return true;
}

void SeriesLane::paintAll(QPainter& painter, const PlotFrame& frame, double left) const {
    const ThemeTokens& t = themeTokens();
    paintScale(painter, frame);
    const QRectF plot = frame.plot();
    painter.save();
    painter.setClipRect(plot, Qt::IntersectClip);
    for (const base::TimeNs place : rules_) {
        if (const double x = axis().x(place); x >= 0 && x <= plot.width()) {
            paintRule(painter, plot.left() + x, plot, t);
        }
    }
    for (const LaneSeries& series : series_) {
        series.mark == LaneSeries::Mark::Ring ? paintRings(painter, series, frame)
                                              : paintLine(painter, series, frame, left);
    }
    painter.restore();
    paintLimit(painter, frame);
    paintEnd(painter, frame);
}

void SeriesLane::paintScale(QPainter& painter, const PlotFrame& frame) const {
    const ThemeTokens& t = themeTokens();
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const int lines = scale_.lines();
    // Every line where numbers do not touch, else the ends.
    const bool roomy = lines < 2 || yOf(scale_.line(0), plot) - yOf(scale_.line(1), plot) >= 15;
    for (int i = 0; i < lines; i += roomy ? 1 : std::max(1, lines - 1)) {
        const double y = std::floor(yOf(scale_.line(i), plot));
        hairline(painter, plot.left(), plot.right(), y, t.line0);
        const double top = std::clamp(y - 7, 0.0, std::max(0.0, plot.height() - 14));
        drawText(painter, QRectF(0, top, frame.gutter - 8, 14), Qt::AlignRight | Qt::AlignVCenter,
                 scale_.text(scale_.line(i)), t.text3, font);
    }
}

void SeriesLane::paintLine(QPainter& painter, const LaneSeries& series, const PlotFrame& frame, double left) const {
    const ThemeTokens& t = themeTokens();
    const QRectF plot = frame.plot();
    const QColor color = series.color ? series.color(t) : t.text2;
    const bool dashed = series.mark == LaneSeries::Mark::Dashed;
    const bool bold = series.mark == LaneSeries::Mark::Bold || dashed;
    painter.setRenderHint(QPainter::Antialiasing, bold);
    QPen pen(color, bold ? 2 : 1);
    if (dashed) {
        pen.setDashPattern({2.5, 1.5}); // 5 px and 3 px
        pen.setCapStyle(Qt::FlatCap);
    }
    QPolygonF line;
    const auto flush = [&] {
        if (line.size() == 1) { // one value alone is a dot
            painter.fillRect(QRectF(line.front().x() - 1.5, line.front().y() - 1.5, 3, 3), color);
        }
        painter.setPen(pen);
        painter.drawPolyline(line);
        line.clear();
    };
    const std::vector<PlotSample> samples = series.samples(axis(), frame.columns());
    // Two samples before the part that is seen, whose line reaches into it. Dashes are counted from the first one.
    const auto seen = std::ranges::lower_bound(samples, left - plot.left(), {}, &PlotSample::x) - samples.begin();
    for (const PlotSample& sample :
         std::span(samples).subspan(dashed || seen < 2 ? 0 : static_cast<std::size_t>(seen) - 2)) {
        if (!std::isfinite(sample.value)) {
            flush();
            continue;
        }
        const double x = plot.left() + sample.x;
        if (sample.high > scale_.high) { // above the scale: said at its edge
            painter.fillRect(QRectF(x - 0.5, plot.top(), 1, 3), t.warn);
        }
        if (sample.low < scale_.low) {
            painter.fillRect(QRectF(x - 0.5, plot.bottom() - 3, 1, 3), t.warn);
        }
        if (sample.high > sample.low && !dashed) {
            const double high = yOf(sample.high, plot), low = yOf(sample.low, plot);
            painter.fillRect(QRectF(x - 0.5 / frame.dpr, high, 1 / frame.dpr, std::max(1 / frame.dpr, low - high)),
                             color);
        }
        line << QPointF(x, yOf(sample.value, plot));
    }
    flush();
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void SeriesLane::paintRings(QPainter& painter, const LaneSeries& series, const PlotFrame& frame) const {
    const ThemeTokens& t = themeTokens();
    const QRectF plot = frame.plot();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(series.color ? series.color(t) : t.text1, 1.5));
    painter.setBrush(t.canvas);
    for (const PlotSample& sample : series.samples(axis(), static_cast<int>(plot.width() / (2 * kRing)))) {
        if (std::isfinite(sample.value)) {
            painter.drawEllipse(QPointF(plot.left() + sample.x, yOf(sample.value, plot)), kRing, kRing);
        }
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void SeriesLane::paintLimit(QPainter& painter, const PlotFrame& frame) const {
    if (!limit_ || *limit_ < scale_.low || *limit_ > scale_.high) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QRectF plot = frame.plot();
    const double y = std::floor(yOf(*limit_, plot)) + 0.5;
    QPen pen(t.warn, 1);
    pen.setDashPattern({6, 3});
    painter.setPen(pen);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double width = textWidth(limitText_, font) + 8;
    const QRectF box(std::floor(plot.left() + plot.width() * 0.4), y > plot.top() + 15 ? y - 15 : y + 1, width, 14);
    painter.fillRect(box, withAlpha(t.canvas, 0.86));
    drawText(painter, box, Qt::AlignCenter, limitText_, t.warn, font);
}

void SeriesLane::paintEnd(QPainter& painter, const PlotFrame& frame) const {
    const ThemeTokens& t = themeTokens();
    const QRectF plot = frame.plot();
    const double x = end_ ? axis().x(*end_) : -1;
    if (x < 0 || x > plot.width()) {
        return;
    }
    plumbline(painter, plot.left() + x, plot.top(), plot.bottom(), withAlpha(t.text1, 0.45));
    const QFont font = Theme::instance().font(TypeRole::Axis, true);
    const double width = std::min(textWidth(endText_, font) + 2, kMostEndWidth);
    if (x + 4 + width > plot.width() + 1) {
        return;
    }
    double y = plot.center().y() - 7;
    if (!series_.empty()) { // beside the bold line, or the only one
        const auto bold = std::ranges::find(series_, LaneSeries::Mark::Bold, &LaneSeries::mark);
        const auto samples = (bold == series_.end() ? series_.front() : *bold).samples(axis(), frame.columns());
        for (const PlotSample& sample : samples) {
            y = std::isfinite(sample.value) && sample.x <= x + 1 ? yOf(sample.value, plot) - 7 : y;
        }
    }
    const QRectF box(plot.left() + x + 4, std::clamp(y, plot.top(), std::max(plot.top(), plot.bottom() - 14)), width,
                     14);
    painter.fillRect(box, withAlpha(t.canvas, 0.86));
    drawText(painter, box, Qt::AlignVCenter, endText_, endAccent_ ? t.accent : t.text1, font);
}

} // namespace vitrine::ui

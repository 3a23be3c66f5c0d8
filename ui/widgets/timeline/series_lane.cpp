// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/series_lane.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

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
    note_->setElide(true);
    note_->setToolTip(note);
    addHeaderControl(note_);
}

void SeriesLane::setNote(const QString& note) {
    note_->setText(note);
    note_->setToolTip(note);
}

void SeriesLane::setSeries(std::vector<LaneSeries> series, const PlotScale& scale, std::optional<base::TimeNs> same) {
    const bool goesOn =
        same && plots_.size() == 1 && scale == this->scale() && series.size() == plots_.front().series.size();
    plots_.resize(1);
    plots_.front().series = std::move(series);
    plots_.front().scale = scale;
    goesOn ? invalidateFrom(*same) : invalidate();
}

void SeriesLane::setPlots(std::vector<SeriesPlot> plots) {
    plots_ = std::move(plots);
    plots_.resize(std::max<std::size_t>(1, plots_.size()));
    invalidate();
}

void SeriesLane::setLimit(std::optional<double> value, const QString& text, bool reference) {
    if (limit_ != value || limitText_ != text || limitIsReference_ != reference) {
        limit_ = value;
        limitText_ = text;
        limitIsReference_ = reference;
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

QRectF SeriesLane::rectOf(std::size_t index, const QRectF& all) const {
    const double height = all.height() / static_cast<double>(plots_.size());
    return {all.left(), all.top() + std::floor(height * static_cast<double>(index)), all.width(), std::floor(height)};
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
    const QRectF all = frame.plot();
    for (std::size_t i = 0; i < plots_.size(); ++i) {
        paintSeriesScale(painter, plots_[i].scale, rectOf(i, all), frame.gutter, t);
    }
    painter.save();
    painter.setClipRect(all, Qt::IntersectClip);
    for (const base::TimeNs place : rules_) {
        if (const double x = axis().x(place); x >= 0 && x <= all.width()) {
            paintRule(painter, all.left() + x, all, t);
        }
    }
    for (std::size_t i = 0; i < plots_.size(); ++i) {
        paintSeries(painter, plots_[i], axis(), rectOf(i, all), frame.dpr, left, t);
    }
    painter.restore();
    paintLimit(painter, frame);
    paintEnd(painter, frame);
}

void SeriesLane::paintOver(QPainter& painter, const PlotFrame& frame) {
    Lane::paintOver(painter, frame);
    const std::optional<base::TimeNs> place = time()->cursor();
    for (std::size_t i = 0; place && i < plots_.size(); ++i) {
        paintSeriesMarks(painter, plots_[i], axis(), rectOf(i, plotRect()), *place, themeTokens());
    }
}

void SeriesLane::paintLimit(QPainter& painter, const PlotFrame& frame) const {
    if (!limit_ || *limit_ < scale().low || *limit_ > scale().high) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QRectF plot = rectOf(0, frame.plot());
    const double y = std::floor(yOf(*limit_, plot)) + 0.5;
    const QColor ink = limitIsReference_ ? t.text2 : t.warn;
    QPen pen(ink, 1);
    pen.setDashPattern(limitIsReference_ ? QList<qreal>{2, 3} : QList<qreal>{6, 3});
    painter.setPen(pen);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    if (limitText_.isEmpty()) {
        return;
    }
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double width = textWidth(limitText_, font) + 8;
    // At the right end lines have their letters.
    const double left = std::floor(plot.left() + plot.width() * (limitIsReference_ ? 0.55 : 0.4));
    const bool below = limitIsReference_ ? y + 16 < plot.bottom() : y <= plot.top() + 15;
    const QRectF box(left, below ? y + 1 : y - 15, width, 14);
    painter.fillRect(box, withAlpha(t.canvas, 0.86));
    drawText(painter, box, Qt::AlignCenter, limitText_, ink, font);
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
    if (const std::vector<LaneSeries>& series = plots_.front().series; !series.empty()) {
        const auto bold = std::ranges::find(series, LaneSeries::Mark::Bold, &LaneSeries::mark);
        // Beside the bold line, or the only one.
        const auto samples = (bold == series.end() ? series.front() : *bold).samples(axis(), frame.columns());
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

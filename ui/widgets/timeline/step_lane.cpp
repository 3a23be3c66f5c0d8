// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/step_lane.h"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kPeakSlack = 9;   ///< around the triangle
constexpr double kLabelAir = 1.15; ///< of the scale, for the words above the peak

} // namespace

StepLane::StepLane(const QString& title, TimeCursor* time, QWidget* parent)
    : Lane(title, time, parent), note_(new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this)) {
    addHeaderControl(note_);
    setPlotHeight(96, 144);
}

void StepLane::setNote(const QString& note) {
    note_->setText(note);
}

void StepLane::setModels(Maker stack, Maker dashed) {
    stack_ = std::move(stack);
    dashed_ = std::move(dashed);
    invalidate();
}

void StepLane::setTop(std::uint64_t bytes) {
    top_ = static_cast<std::uint64_t>(static_cast<double>(std::max<std::uint64_t>(1, bytes)) * kLabelAir);
    invalidate();
}

void StepLane::setBudget(std::optional<std::uint64_t> bytes) {
    budget_ = bytes;
    invalidate();
}

void StepLane::setPeak(const std::optional<profiler::MemoryColumn>& peak) {
    peak_ = peak;
    invalidate();
}

void StepLane::setGuides(std::vector<base::TimeNs> guides) {
    guides_ = std::move(guides);
    invalidate();
}

void StepLane::setNotes(std::vector<LaneNote> notes) {
    notes_ = std::move(notes);
    invalidate();
}

ByteScale StepLane::scale() const {
    return byteScale(top_, plotRect().height());
}

QImage StepLane::paint(const PlotFrame& frame) {
    StackInput input;
    input.axis = axis();
    input.top = top_;
    input.budget = budget_;
    input.guides = guides_;
    input.peak = peak_;
    input.model = stack_ ? stack_(axis(), frame.columns()) : nullptr;
    QImage image = paintStack(input, frame, themeTokens());
    QPainter painter(&image);
    const ByteScale scale = stackScale(input, frame.plot().height());
    if (const StackModelPtr other = dashed_ ? dashed_(axis(), frame.columns()) : nullptr) {
        paintDashed(painter, *other, frame, scale);
    }
    paintNotes(painter, frame, scale);
    return image;
}

void StepLane::paintDashed(QPainter& painter, const StackModel& model, const PlotFrame& frame,
                           const ByteScale& scale) const {
    QPen pen(themeTokens().compareB, 1.5);
    pen.setDashPattern({5 / 1.5, 3 / 1.5});
    pen.setCapStyle(Qt::FlatCap);
    painter.setPen(pen);
    QPolygonF line;
    for (std::size_t i = 0; i < model.columns.size(); ++i) {
        if (!model.columns[i].present) {
            painter.drawPolyline(line);
            line.clear();
            continue;
        }
        const double y = frame.plot().top() + std::round(scale.y(static_cast<double>(model.columns[i].total))) + 0.5;
        const QPointF point(frame.plot().left() + (static_cast<double>(i) + 0.5) / frame.dpr, y);
        if (!line.isEmpty() && line.back().y() != y) {
            line << QPointF(point.x(), line.back().y()); // totals change at once
        }
        line << point;
    }
    painter.drawPolyline(line);
}

void StepLane::paintNotes(QPainter& painter, const PlotFrame& frame, const ByteScale& scale) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis, true);
    const QRectF plot = frame.plot();
    LabelPlaces places;
    for (const LaneNote& note : notes_) {
        const double x = plot.left() + axis().x(note.place);
        if (x < plot.left() - 1 || x > plot.right()) {
            continue;
        }
        const double wide = textWidth(note.text, font) + 2;
        const double left = std::clamp(x + 4, plot.left() + 2, std::max(plot.left() + 2, plot.right() - wide - 2));
        const double y = plot.top() + scale.y(static_cast<double>(note.bytes));
        for (const double up : {17.0, 32.0}) {
            const QRectF box(left, std::max(plot.top() + 1, y - up), wide, 15);
            if (places.take(box)) {
                painter.fillRect(box, withAlpha(t.canvas, 0.7));
                drawText(painter, box, Qt::AlignVCenter, note.text, note.other ? t.compareB : t.text1, font);
                break;
            }
        }
    }
}

void StepLane::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    if (peak_) {
        const double x = xOf(peak_->maxTime);
        const double y = plotRect().top() + scale().y(static_cast<double>(peak_->maxTotal));
        if (std::abs(position.x() - x) <= kPeakSlack && position.y() <= y + 4 && position.y() >= y - 2 * kPeakSlack) {
            emit peakClicked();
            return;
        }
    }
    Lane::clickedAt(position, modifiers);
}

void StepLane::doubleClickedAt(QPointF position) {
    emit placeOpened(timeAt(position.x()));
}

void StepLane::keyPressEvent(QKeyEvent* event) {
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && time()->cursor()) {
        emit placeOpened(*time()->cursor());
        return;
    }
    Lane::keyPressEvent(event);
}

} // namespace vitrine::ui

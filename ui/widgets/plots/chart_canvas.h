// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Qt Charts view inside a Chart; for chart.cpp alone.

#include <QChart>
#include <QChartView>
#include <QPainter>
#include <QValueAxis>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

/// The Qt Charts view; it paints marks, notes and the cursor over the chart.
class Chart::Canvas final : public QChartView {
public:
    explicit Canvas(Chart* owner) : QChartView(new QChart, owner), owner_(owner) {
        setFrameShape(QFrame::NoFrame);
        setFocusPolicy(Qt::NoFocus);
        setAttribute(Qt::WA_TransparentForMouseEvents); // the Chart takes all input
        setRenderHint(QPainter::Antialiasing);
        setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        chart()->legend()->hide();
        chart()->setBackgroundRoundness(0);
        chart()->setMargins(QMargins());
        chart()->setAnimationOptions(QChart::NoAnimation);
        chart()->setBackgroundVisible(false);
        chart()->setPlotAreaBackgroundVisible(false);
        // One pair of axes for the whole life, never drawn: axes that are taken away leave their labels in the scene.
        for (const auto& [axis, side] : {std::pair{&xAxis_, Qt::AlignBottom}, {&yAxis_, Qt::AlignLeft}}) {
            *axis = new QValueAxis(chart());
            chart()->addAxis(*axis, side);
            (*axis)->setVisible(false);
        }
    }

    void attach(QAbstractSeries* series) const {
        chart()->addSeries(series);
        series->attachAxis(xAxis_);
        series->attachAxis(yAxis_);
    }

    /// Takes the ranges of the owner's axes and leaves room for their words.
    void layOut() {
        xAxis_->setRange(owner_->x_.begin, owner_->x_.top);
        yAxis_->setRange(owner_->y_.begin, owner_->y_.top);
        const QFont font = Theme::instance().font(TypeRole::Axis);
        double widest = 0;
        for (const auto& [value, text] : owner_->y_.ticks) {
            widest = std::max(widest, textWidth(text, font));
        }
        const double left = 8 + kTitle + std::ceil(widest) + kTickAir;
        const QSizeF size = viewport()->size();
        chart()->setPlotArea(
            {left, kTop, std::max(10.0, size.width() - left - kRight), std::max(10.0, size.height() - kTop - kBottom)});
        viewport()->update();
    }

    QPointF place(const QPointF& value) const {
        const QRectF area = chart()->plotArea();
        const ChartAxis &x = owner_->x_, &y = owner_->y_;
        return {area.left() + (value.x() - x.begin) / (x.top - x.begin) * area.width(),
                area.bottom() - (value.y() - y.begin) / (y.top - y.begin) * area.height()};
    }

protected:
    /// The grid: Qt Charts would draw one more line at the end of the axis.
    void drawBackground(QPainter* painter, const QRectF&) override {
        const ThemeTokens& t = themeTokens();
        painter->fillRect(rect(), t.canvas);
        const QRectF area = chart()->plotArea();
        for (const auto& [value, text] : owner_->y_.ticks) {
            hairline(*painter, area.left(), area.right(), std::floor(place({0, value}).y()),
                     value > 0 ? t.line0 : t.line1);
        }
        drawAxes(*painter, area);
    }

    void resizeEvent(QResizeEvent* event) override {
        QChartView::resizeEvent(event);
        layOut();
    }

    void drawForeground(QPainter* painter, const QRectF&) override {
        painter->save();
        painter->setClipping(false);
        drawMarks(*painter);
        drawNotes(*painter);
        drawCursor(*painter);
        if (owner_->hasFocus()) {
            painter->setPen(QPen(themeTokens().accent, 2));
            painter->setBrush(Qt::NoBrush);
            painter->drawRect(QRectF(rect()).adjusted(2, 2, -2, -2));
        }
        painter->restore();
    }

private:
    static constexpr double kTop = 16, kRight = 24, kBottom = 48, kTitle = 24, kTickAir = 6;

    void drawAxes(QPainter& painter, const QRectF& area) const {
        const ThemeTokens& t = themeTokens();
        const QFont font = Theme::instance().font(TypeRole::Axis);
        for (const auto& [value, text] : owner_->y_.ticks) {
            drawText(painter, QRectF(0, place({0, value}).y() - 8, area.left() - kTickAir, 16),
                     Qt::AlignRight | Qt::AlignVCenter, text, t.text3, font);
        }
        double taken = 0;
        for (const auto& [value, text] : owner_->x_.ticks) {
            const double x = std::floor(place({value, 0}).x()), width = textWidth(text, font) + 2;
            plumbline(painter, x, area.bottom(), area.bottom() + 4, t.line1);
            const double left = std::min(x - width / 2, rect().right() - width - 4);
            if (left > taken) {
                drawText(painter, QRectF(left, area.bottom() + 6, width, 16), Qt::AlignCenter, text, t.text3, font);
                taken = left + width + 8;
            }
        }
        drawText(painter, QRectF(area.left(), area.bottom() + 26, area.width(), 16), Qt::AlignCenter, owner_->x_.title,
                 t.text2, font);
        painter.save();
        painter.translate(8, area.bottom());
        painter.rotate(-90);
        drawText(painter, QRectF(0, 0, area.height(), 16), Qt::AlignCenter, owner_->y_.title, t.text2, font);
        painter.restore();
    }

    void drawMarks(QPainter& painter) const {
        const ThemeTokens& t = themeTokens();
        const QRectF area = chart()->plotArea();
        const QFont font = Theme::instance().font(TypeRole::Axis);
        for (const ChartMark& mark : owner_->marks_) {
            const QPointF at = place({mark.at, mark.at});
            QPen pen(t.line2, 1);
            pen.setDashPattern({2, 2});
            painter.setPen(pen);
            const double width = textWidth(mark.text, font) + 2;
            if (mark.orientation == Qt::Vertical) {
                const double x = std::floor(at.x()) + 0.5;
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
                const bool right = x + 6 + width < area.right();
                drawText(painter, QRectF(right ? x + 5 : x - 5 - width, area.top() + 2, width, 14),
                         Qt::AlignVCenter | (right ? Qt::AlignLeft : Qt::AlignRight), mark.text, t.text2, font);
            } else {
                const double y = std::floor(at.y()) + 0.5;
                painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
                drawText(painter, QRectF(area.left() + 4, y - 15, width, 14), Qt::AlignVCenter, mark.text, t.text2,
                         font);
            }
        }
    }

    void drawNotes(QPainter& painter) const {
        const ThemeTokens& t = themeTokens();
        const QRectF area = chart()->plotArea();
        std::vector<QRectF> taken;
        for (const ChartNote& note : owner_->notes_) {
            const QFont font = Theme::instance().font(TypeRole::Table, note.strong);
            const QPointF at = place(note.at);
            const double width = textWidth(note.text, font) + 2;
            double left = note.toRight ? at.x() + 8 : at.x() - 8 - width;
            left = std::clamp(left, area.left() + 2, std::max(area.left() + 2, area.right() - width - 2));
            double top = std::clamp(at.y() - 18, area.top() + 1, area.bottom() - 17);
            QRectF box(left, top, width, 16);
            const auto covered = [&](const QRectF& wanted) {
                return std::any_of(taken.begin(), taken.end(), [&](const QRectF& r) { return r.intersects(wanted); });
            };
            for (int step = 1; covered(box) && step < 12; ++step) {
                const double shift = (step % 2 == 1 ? 1 : -1) * ((step + 1) / 2) * 17.0;
                const QRectF moved = box.translated(0, shift);
                if (area.contains(moved) && !covered(moved)) {
                    box = moved;
                }
            }
            if (covered(box)) {
                continue; // the table twin and the inspector say it
            }
            taken.push_back(box);
            painter.fillRect(box.adjusted(-3, 0, 3, 0), withAlpha(t.canvas, 0.86));
            drawText(painter, box, Qt::AlignVCenter, note.text, note.color ? note.color(t) : t.text1, font);
        }
    }

    void drawCursor(QPainter& painter) const {
        if (!owner_->cursor_) {
            return;
        }
        const ThemeTokens& t = themeTokens();
        const QRectF area = chart()->plotArea();
        const double x = std::floor(place({*owner_->cursor_, 0}).x());
        plumbline(painter, x, area.top(), area.bottom(), t.text1);
    }

    Chart* owner_;
    QValueAxis *xAxis_ = nullptr, *yAxis_ = nullptr;
};

} // namespace vitrine::ui

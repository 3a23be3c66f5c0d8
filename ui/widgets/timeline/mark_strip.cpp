// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/mark_strip.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kMarkRow = 16;
constexpr double kSquare = 9, kDiamond = 11;
constexpr double kMarkSlack = 6;

void paintMark(QPainter& painter, const StripMark& mark, QPointF middle, const ThemeTokens& theme) {
    const QColor color = mark.look == StripMark::Look::Accent   ? theme.accent
                         : mark.look == StripMark::Look::Filled ? theme.text2
                                                                : theme.line2;
    painter.setPen(QPen(color, 1));
    painter.setBrush(mark.look == StripMark::Look::Outline ? QBrush(Qt::NoBrush) : QBrush(color));
    if (mark.shape == StripMark::Shape::Square) {
        const double half = std::floor(kSquare / 2);
        painter.drawRect(QRectF(middle.x() - half + 0.5, middle.y() - half + 0.5, kSquare - 1, kSquare - 1));
        return;
    }
    painter.setRenderHint(QPainter::Antialiasing);
    const double half = kDiamond / 2;
    painter.drawPolygon(QPolygonF({middle + QPointF(0, -half), middle + QPointF(half, 0), middle + QPointF(0, half),
                                   middle + QPointF(-half, 0)}));
    painter.setRenderHint(QPainter::Antialiasing, false);
}

} // namespace

MarkStrip::MarkStrip(const QString& title, TimeCursor* time, QWidget* parent) : TimeStrip(title, time, parent) {
    setFixedHeight(kMarkRow + 1);
}

void MarkStrip::setRows(std::vector<MarkRow> rows) {
    rows_ = std::move(rows);
    setFixedHeight(static_cast<int>(std::max<std::size_t>(1, rows_.size())) * kMarkRow + 1);
    update();
}

void MarkStrip::setRules(std::vector<base::TimeNs> places) {
    rules_ = std::move(places);
    update();
}

QString MarkStrip::spoken() const {
    QStringList words;
    for (const MarkRow& row : rows_) {
        words << tr("%1: %2 marks").arg(row.title).arg(row.marks.size());
    }
    return words.join(QStringLiteral(", "));
}

void MarkStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.canvas);
    hairline(painter, 0, width(), height() - 1, t.line1);
    for (const base::TimeNs place : rules_) {
        if (const double x = xOf(place); x >= gutter()) {
            paintRule(painter, x, plotRect(), t);
        }
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        paintRow(painter, rows_[r], static_cast<double>(r) * kMarkRow);
    }
    paintCursor(painter, plotRect(), false);
    paintFocus(painter, rect());
}

void MarkStrip::paintRow(QPainter& painter, const MarkRow& row, double top) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    drawText(painter, QRectF(8, top, gutter() - 10, kMarkRow), Qt::AlignVCenter, row.title, t.text3, font);
    const auto first = std::ranges::lower_bound(row.marks, axis().range().begin, {}, &StripMark::place);
    double taken = gutter(); // nothing more is written left of here
    for (auto mark = first; mark != row.marks.end() && mark->place <= axis().range().end; ++mark) {
        const double x = xOf(mark->place);
        const bool crowded = mark != first && x - xOf(std::prev(mark)->place) < 2;
        if (!crowded || mark->look == StripMark::Look::Accent) {
            paintMark(painter, *mark, {std::floor(x), top + kMarkRow / 2.0}, t);
        }
        if (mark->label.isEmpty()) {
            taken = std::max(taken, x + kSquare);
            continue;
        }
        const double wide = textWidth(mark->label, font) + 2;
        const double next = std::next(mark) == row.marks.end() ? width() : xOf(std::next(mark)->place) - kSquare;
        const QColor color = mark->look == StripMark::Look::Accent ? t.accent : t.text3;
        if (x + 8 + wide <= std::min(next, static_cast<double>(width()))) {
            drawText(painter, QRectF(x + 8, top, wide, kMarkRow), Qt::AlignVCenter, mark->label, color, font);
            taken = x + 8 + wide;
        } else if (x - 8 - wide >= taken) {
            drawText(painter, QRectF(x - 8 - wide, top, wide, kMarkRow), Qt::AlignVCenter, mark->label, color, font);
            taken = x + kSquare;
        }
    }
}

MarkStrip::Hit MarkStrip::hitAt(QPointF position) const {
    const int row = static_cast<int>(std::floor(position.y() / kMarkRow));
    if (row < 0 || row >= static_cast<int>(rows_.size()) || position.x() < gutter() - kMarkSlack) {
        return {};
    }
    Hit best;
    double nearest = kMarkSlack;
    const std::vector<StripMark>& marks = rows_[static_cast<std::size_t>(row)].marks;
    for (std::size_t i = 0; i < marks.size(); ++i) {
        if (const double away = std::abs(xOf(marks[i].place) - position.x()); away <= nearest) {
            nearest = away;
            best = {row, static_cast<int>(i)};
        }
    }
    return best;
}

void MarkStrip::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    TimeStrip::clickedAt(position, modifiers);
    if (const Hit hit = hitAt(position); hit.mark >= 0) {
        time()->setCursor(rows_[static_cast<std::size_t>(hit.row)].marks[static_cast<std::size_t>(hit.mark)].place);
        emit markClicked(hit.row, hit.mark);
    }
}

bool MarkStrip::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const Hit hit = hitAt(help->pos());
        QToolTip::showText(help->globalPos(),
                           hit.mark < 0
                               ? QString()
                               : rows_[static_cast<std::size_t>(hit.row)].marks[static_cast<std::size_t>(hit.mark)].tip,
                           this);
        return true;
    }
    return TimeStrip::event(event);
}

} // namespace vitrine::ui

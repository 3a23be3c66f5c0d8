// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/part_strip.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>
#include <vector>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kPartRow = 16;
constexpr double kPartPadding = 4, kUsualInset = 6;

} // namespace

PartStrip::PartStrip(const QString& title, TimeCursor* time, QWidget* parent) : TimeStrip(title, time, parent) {
    setFixedHeight(kPartRow + 1);
}

void PartStrip::setRows(std::vector<PartRow> rows) {
    rows_ = std::move(rows);
    setFixedHeight(static_cast<int>(std::max<std::size_t>(1, rows_.size())) * kPartRow + 1);
    update();
}

QString PartStrip::spoken() const {
    const auto at = time()->cursor();
    QStringList words;
    for (const PartRow& row : rows_) {
        for (const StripPart& part : row.parts) {
            if (at && part.range.contains(*at)) {
                words << (part.tip.isEmpty() ? part.label : part.tip);
            }
        }
    }
    return words.join(QStringLiteral(", "));
}

void PartStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.canvas);
    hairline(painter, 0, width(), height() - 1, t.line1);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        paintRow(painter, rows_[r], static_cast<double>(r) * kPartRow);
    }
    paintCursor(painter, plotRect(), false);
    paintFocus(painter, rect());
}

void PartStrip::paintRow(QPainter& painter, const PartRow& row, double top) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QRectF plot = plotRect();
    const QColor ink = row.strong ? t.text1 : t.text2;
    drawText(painter, QRectF(8, top, gutter() - 10, kPartRow), Qt::AlignVCenter, row.title, t.text3, font);
    std::vector<std::pair<double, QString>> ahead; // left edges of parts, and the labels before them
    for (const StripPart& part : row.parts) {
        const double a = std::max(plot.left(), xOf(part.range.begin)), b = std::min(plot.right(), xOf(part.range.end));
        if (b < plot.left() || a > plot.right()) {
            continue;
        }
        const QRectF box(std::round(a), top, std::max(1.0, std::round(b) - std::round(a) - 1), kPartRow - 1);
        painter.fillRect(box, part.dark ? t.pressed : t.hover);
        const auto fits = [&](const QString& label) {
            return !label.isEmpty() && textWidth(label, font) + kPartPadding <= box.width();
        };
        if (const QString label = fits(part.fullLabel) ? part.fullLabel
                                  : fits(part.label)   ? part.label
                                                       : part.shortLabel;
            fits(label)) {
            const double inset = std::min(kUsualInset, (box.width() - textWidth(label, font)) / 2);
            drawText(painter, box.adjusted(inset, 0, 2, 0), Qt::AlignVCenter, label, ink, font);
        } else if (part.ahead && !part.label.isEmpty()) {
            ahead.emplace_back(box.left(), part.label + QStringLiteral("  →"));
        }
    }
    double end = plot.right(); // of the next label to the left, which stands before those that are there
    for (const auto& [left, words] : std::views::reverse(ahead)) {
        const double room = textWidth(words, font) + 2;
        end = std::min(left, end) - room - 4;
        drawText(painter, QRectF(end, top, room, kPartRow - 1), Qt::AlignVCenter, words, ink, font);
    }
    for (const auto& [range, words] : row.captions) {
        const double wide = textWidth(words, font) + 12, middle = (xOf(range.begin) + xOf(range.end)) / 2;
        if (xOf(range.end) - xOf(range.begin) >= wide + 8) {
            const QRectF box(std::round(middle - wide / 2), top, wide, kPartRow - 1);
            painter.fillRect(box, t.hover);
            drawText(painter, box, Qt::AlignCenter, words, t.text2, font);
        }
    }
}

PartStrip::Hit PartStrip::hitAt(QPointF position) const {
    const int row = static_cast<int>(std::floor(position.y() / kPartRow));
    if (row < 0 || row >= static_cast<int>(rows_.size()) || position.x() < gutter()) {
        return {};
    }
    const base::TimeNs at = timeAt(position.x());
    const std::vector<StripPart>& parts = rows_[static_cast<std::size_t>(row)].parts;
    const auto found = std::ranges::find_if(parts, [at](const StripPart& part) { return part.range.contains(at); });
    return found == parts.end() ? Hit{} : Hit{row, static_cast<int>(found - parts.begin())};
}

void PartStrip::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    const Hit hit = hitAt(position);
    if (hit.part < 0) {
        TimeStrip::clickedAt(position, modifiers);
        return;
    }
    time()->setCursor(timeAt(position.x()));
    emit partClicked(hit.row, hit.part);
}

bool PartStrip::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const Hit hit = hitAt(help->pos());
        QToolTip::showText(help->globalPos(),
                           hit.part < 0
                               ? QString()
                               : rows_[static_cast<std::size_t>(hit.row)].parts[static_cast<std::size_t>(hit.part)].tip,
                           this);
        return true;
    }
    return TimeStrip::event(event);
}

} // namespace vitrine::ui

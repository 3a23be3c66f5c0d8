// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/legend_strip.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kLegendRow = 18; ///< of items that wrap
constexpr double kLegendEdge = 12, kMarkRoom = 20, kItemGap = 18;

} // namespace

LegendStrip::LegendStrip(QWidget* parent) : QWidget(parent) {
    setFixedHeight(24);
    connect(&Theme::instance(), &Theme::changed, this, [this] { update(); });
}

void LegendStrip::setItems(std::vector<LegendItem> items, const QString& facts) {
    items_ = std::move(items);
    facts_ = facts;
    QStringList names;
    for (const LegendItem& item : items_) {
        names << item.name;
    }
    setAccessibleName(names.join(QStringLiteral(", ")));
    fit();
    update();
}

void LegendStrip::setWraps() {
    wraps_ = true;
    fit();
}

double LegendStrip::cellWidth() const {
    const QFont font = Theme::instance().font(TypeRole::Table);
    double widest = textWidth(facts_, font);
    for (const LegendItem& item : items_) {
        widest = std::max(widest, kMarkRoom + textWidth(item.name, font));
    }
    return std::ceil(widest) + kItemGap;
}

int LegendStrip::columns() const {
    return std::max(1, static_cast<int>((width() - 2 * kLegendEdge + kItemGap) / cellWidth()));
}

int LegendStrip::rows() const {
    const int cells = static_cast<int>(items_.size()) + (facts_.isEmpty() ? 0 : 1);
    return wraps_ ? std::max(1, (cells + columns() - 1) / columns()) : 1;
}

void LegendStrip::fit() {
    setFixedHeight(wraps_ ? rows() * kLegendRow + 6 : 24);
}

void LegendStrip::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fit();
}

/// Its mark and its name, `wide` px of it.
void LegendStrip::paintItem(QPainter& painter, const LegendItem& item, QPointF place, double wide) const {
    const ThemeTokens& t = themeTokens();
    const QRectF mark(place.x(), place.y() - 6, 12, 12);
    switch (item.mark) {
    case LegendItem::Mark::Swatch:
        if (const CategoryStyle style = item.style ? item.style(t) : CategoryStyle{}; style.fill.isValid()) {
            drawSwatch(painter, mark, style);
            if (contrastRatio(style.fill, t.window) < 1.5) { // else it could not be seen on the strip
                painter.setPen(t.line2);
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(mark.adjusted(0.5, 0.5, -0.5, -0.5));
            }
        }
        break;
    case LegendItem::Mark::Dot:
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(t.text1);
        painter.drawEllipse(mark.center(), 3, 3);
        painter.setRenderHint(QPainter::Antialiasing, false);
        break;
    case LegendItem::Mark::Line:
        hairline(painter, mark.left(), mark.right(), mark.center().y(), t.text1);
        break;
    case LegendItem::Mark::Dashes:
        hairline(painter, mark.left(), mark.left() + 5, mark.center().y(), t.text2);
        hairline(painter, mark.left() + 8, mark.right() + 1, mark.center().y(), t.text2);
        break;
    case LegendItem::Mark::BadgeA:
    case LegendItem::Mark::BadgeB:
    case LegendItem::Mark::BadgeC:
        drawRunBadge(painter, mark.adjusted(-2, -2, 2, 2),
                     item.mark == LegendItem::Mark::BadgeA   ? QLatin1Char('A')
                     : item.mark == LegendItem::Mark::BadgeB ? QLatin1Char('B')
                                                             : QLatin1Char('C'),
                     true);
        break;
    }
    drawText(painter, QRectF(place.x() + kMarkRoom, place.y() - 10, wide, 20), Qt::AlignVCenter, item.name, t.text1,
             Theme::instance().font(TypeRole::Table));
}

void LegendStrip::paintCells(QPainter& painter) const {
    const double cell = cellWidth();
    const int across = columns();
    int at = 0;
    const auto place = [&] {
        const QPointF out(kLegendEdge + at % across * cell, 3 + kLegendRow * (at / across + 0.5));
        ++at;
        return out;
    };
    if (!facts_.isEmpty()) {
        const QPointF first = place();
        drawText(painter, QRectF(first.x(), first.y() - 10, cell - kItemGap + 1, 20), Qt::AlignVCenter, facts_,
                 themeTokens().text3, Theme::instance().font(TypeRole::Table));
    }
    for (const LegendItem& item : items_) {
        paintItem(painter, item, place(), cell - kMarkRoom - kItemGap + 1);
    }
}

void LegendStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.window);
    hairline(painter, 0, width(), height() - 1, t.line0);
    if (wraps_) {
        paintCells(painter);
        return;
    }
    const QFont font = Theme::instance().font(TypeRole::Table);
    double x = kLegendEdge;
    for (const LegendItem& item : items_) {
        const double text = textWidth(item.name, font);
        const bool room = x + kMarkRoom + text <= width() - 8;
        paintItem(painter, item, {x, 12}, room ? text + 2 : 0);
        if (!room) {
            break;
        }
        x += kMarkRoom + text + kItemGap;
    }
    const double wanted = textWidth(facts_, font);
    if (!facts_.isEmpty() && x + wanted + 12 < width()) {
        drawText(painter, QRectF(width() - 12 - wanted - 1, 0, wanted + 2, height() - 1), Qt::AlignVCenter, facts_,
                 t.text3, font);
    }
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/legend_strip.h"

#include <QPainter>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

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
    update();
}

void LegendStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.window);
    hairline(painter, 0, width(), height() - 1, t.line0);
    const QFont font = Theme::instance().font(TypeRole::Table);
    double x = 12;
    for (const LegendItem& item : items_) {
        const QRectF mark(x, 6, 12, 12);
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
            hairline(painter, x, x + 12, 12, t.text1);
            break;
        case LegendItem::Mark::Dashes:
            hairline(painter, x, x + 5, 12, t.text2);
            hairline(painter, x + 8, x + 13, 12, t.text2);
            break;
        case LegendItem::Mark::BadgeA:
        case LegendItem::Mark::BadgeB:
        case LegendItem::Mark::BadgeC:
            drawRunBadge(painter, QRectF(x - 2, 4, 16, 16),
                         item.mark == LegendItem::Mark::BadgeA   ? QLatin1Char('A')
                         : item.mark == LegendItem::Mark::BadgeB ? QLatin1Char('B')
                                                                 : QLatin1Char('C'),
                         true);
            break;
        }
        x += 20;
        const double text = textWidth(item.name, font);
        if (x + text > width() - 8) {
            break;
        }
        x += drawText(painter, QRectF(x, 0, text + 2, height() - 1), Qt::AlignVCenter, item.name, t.text1, font) + 18;
    }
    const double wanted = textWidth(facts_, font);
    if (!facts_.isEmpty() && x + wanted + 12 < width()) {
        drawText(painter, QRectF(width() - 12 - wanted - 1, 0, wanted + 2, height() - 1), Qt::AlignVCenter, facts_,
                 t.text3, font);
    }
}

} // namespace vitrine::ui

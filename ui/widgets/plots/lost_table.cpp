// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/lost_table.h"

#include <algorithm>
#include <array>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr std::array<double, 3> kLostEnds = {58, 128, 194}; ///< right ends of the first columns

} // namespace

LostTable::LostTable(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setMouseTracking(true);
}

void LostTable::setLines(std::vector<LostLine> lines, const QString& place) {
    lines_ = std::move(lines);
    place_ = place;
    forgetCurrentItem();
    setFixedHeight(sizeHint().height());
    updateGeometry();
    invalidate();
}

QImage LostTable::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.panel);
    QPainter painter(&image);
    const QFont axis = Theme::instance().font(TypeRole::Axis), font = Theme::instance().font(TypeRole::Table);
    const double last = size.width() - 12;
    const auto cell = [&](double right, double y, double height, const QString& text, const QColor& color,
                          const QFont& in) {
        drawText(painter, QRectF(right - 64, y, 64, height), Qt::AlignRight | Qt::AlignVCenter, text, color, in);
    };
    cell(kLostEnds[0], 0, kHead, place_, t.text3, axis);
    cell(kLostEnds[1], 0, kHead, tr("Tokens"), t.text3, axis);
    cell(kLostEnds[2], 0, kHead, tr("Lost"), t.text3, axis);
    drawText(painter, QRectF(last - 120, 0, 120, kHead), Qt::AlignRight | Qt::AlignVCenter, tr("of that trained"),
             t.text3, axis);
    hairline(painter, 0, size.width(), kHead - 1, t.line0);
    for (int i = 0; i < itemCount(); ++i) {
        const LostLine& line = lines_[static_cast<std::size_t>(i)];
        const double y = kHead + i * kRow;
        cell(kLostEnds[0], y, kRow, countText(line.line), t.accent, font);
        cell(kLostEnds[1], y, kRow, countText(line.tokens), t.text1, font);
        cell(kLostEnds[2], y, kRow, countText(line.lost), t.warn, font);
        cell(last, y, kRow, countText(line.lostTrained), t.text1, font);
        if (line.keepsNothing) {
            const double left = textWidth(countText(line.lostTrained), font) + 4;
            cell(last - left, y, kRow, tr("all"), t.bad, font);
        }
    }
    return image;
}

int LostTable::itemAt(QPointF position) const {
    const int item = static_cast<int>((position.y() - kHead) / kRow);
    return position.y() >= kHead && item < itemCount() ? item : -1;
}

QString LostTable::itemText(int item) const {
    const LostLine& line = lines_[static_cast<std::size_t>(item)];
    return tr("%1 %2: %3 tokens, %4 lost, %5 of them trained%6")
        .arg(place_, countText(line.line), countText(line.tokens), countText(line.lost), countText(line.lostTrained),
             line.keepsNothing ? tr(", keeps no answer") : QString());
}

QRectF LostTable::itemFrame(int item) const {
    return {1.5, kHead + item * kRow + 0.5, static_cast<double>(width() - 3), kRow - 1.0};
}

} // namespace vitrine::ui

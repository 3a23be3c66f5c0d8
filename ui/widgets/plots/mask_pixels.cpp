// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/mask_pixels.h"

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/pack_paint.h"

namespace vitrine::ui {

namespace {

constexpr double kNamedTriangle = 30; ///< px

} // namespace

MaskPixels::MaskPixels(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setMouseTracking(true);
    setSide(256);
}

void MaskPixels::setSide(int pixels) {
    side_ = pixels;
    setFixedSize(side_ + 2, side_ + 2);
    invalidate();
}

void MaskPixels::setMask(MaskPicture mask, std::vector<PackedRow> rows, std::int64_t length) {
    mask_ = std::move(mask);
    rows_ = std::move(rows);
    length_ = std::max<std::int64_t>(1, length);
    forgetCurrentItem();
    invalidate();
}

void MaskPixels::setChosen(int row) {
    chosen_ = row;
    update();
}

QRectF MaskPixels::triangle(int row) const {
    const StripSpan& span = rows_[static_cast<std::size_t>(row)].span;
    const double scale = side_ / static_cast<double>(length_);
    const double a = std::floor(static_cast<double>(span.begin) * scale);
    const double b = std::ceil(static_cast<double>(span.end) * scale);
    return {1 + a, 1 + a, b - a, b - a};
}

QImage MaskPixels::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QColor empty = t.sets.at(QStringLiteral("blocks.empty")), full = t.sets.at(QStringLiteral("blocks.full"));
    const QColor partial = t.sets.at(QStringLiteral("blocks.partial"));
    painter.fillRect(QRectF(1, 1, side_, side_), empty);
    const double cell = mask_.side > 0 ? side_ / static_cast<double>(mask_.side) : 1;
    for (int row = 0; row < mask_.side; ++row) {
        for (int column = 0; column <= row; ++column) {
            if (const MaskPicture::Cell state = mask_.at(row, column); state != MaskPicture::Empty) {
                const double x = std::round(column * cell), y = std::round(row * cell);
                painter.fillRect(
                    QRectF(1 + x, 1 + y, std::round((column + 1) * cell) - x, std::round((row + 1) * cell) - y),
                    state == MaskPicture::Full ? full : partial);
            }
        }
    }
    const QFont font = Theme::instance().font(TypeRole::Axis);
    for (int row = 0; row < itemCount(); ++row) {
        const QRectF box = triangle(row);
        const QString& name = rows_[static_cast<std::size_t>(row)].name;
        if (box.width() > kNamedTriangle && box.right() - textWidth(name, font) - 4 > 0) {
            // Above the diagonal there is room.
            drawText(painter, QRectF(box.left(), box.top() + 2, box.width() - 4, 16), Qt::AlignRight | Qt::AlignVCenter,
                     name, t.text2, font);
        }
    }
    return image;
}

void MaskPixels::paintOver(QPainter& painter) {
    if (chosen_ >= 0 && chosen_ < itemCount()) {
        const QRectF box = triangle(chosen_);
        painter.setPen(QPen(themeTokens().text1, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box);
        const QFont font = Theme::instance().font(TypeRole::Axis, true);
        const QString& name = rows_[static_cast<std::size_t>(chosen_)].name;
        if (box.left() > textWidth(name, font) + 8) {
            drawText(painter, QRectF(0, box.top(), box.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter, name,
                     themeTokens().text1, font);
        }
    }
    ItemPlot::paintOver(painter);
}

int MaskPixels::itemAt(QPointF position) const {
    for (int row = 0; row < itemCount(); ++row) {
        if (triangle(row).contains(position)) {
            return row;
        }
    }
    return -1;
}

QString MaskPixels::itemText(int item) const {
    const StripSpan& span = rows_[static_cast<std::size_t>(item)].span;
    const std::int64_t block = std::max<std::int64_t>(1, mask_.block);
    return tr("Row %1: blocks %2 to %3 of queries and keys")
        .arg(rows_[static_cast<std::size_t>(item)].name, countText(span.begin / block),
             countText((span.end - 1) / block));
}

QRectF MaskPixels::itemFrame(int item) const {
    return triangle(item).adjusted(-0.5, -0.5, 0.5, 0.5);
}

int MaskPixels::itemBeside(int item, int key) const {
    return packBeside(item < 0 ? chosen_ : item, key, itemCount());
}

MaskCounts::MaskCounts(QWidget* parent) : QWidget(parent) {
    setFixedHeight(sizeHint().height());
}

void MaskCounts::setMask(const MaskPicture& mask) {
    mask_ = mask;
    mask_.cells.clear();
    setAccessibleName(asText());
    update();
}

QString MaskCounts::comparison() const {
    const std::int64_t computed = mask_.full + mask_.partial;
    const double ratio = static_cast<double>(mask_.causal) / static_cast<double>(std::max<std::int64_t>(1, computed));
    return ratio > 1.005 ? tr("%1 fewer blocks").arg(ratioText(ratio)) : tr("As many blocks");
}

QString MaskCounts::asText() const {
    return tr("%1 full, %2 partial, %3 empty blocks. %4 than one causal mask: %5 of %6")
        .arg(countText(mask_.full), countText(mask_.partial), countText(mask_.empty), comparison(),
             countText(mask_.full + mask_.partial), countText(mask_.causal));
}

void MaskCounts::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeTokens& t = themeTokens();
    painter.fillRect(rect(), t.canvas);
    const QFont axis = Theme::instance().font(TypeRole::Axis), font = Theme::instance().font(TypeRole::Table);
    const double right = width();
    drawText(
        painter, QRectF(0, 2, right, 16), Qt::AlignVCenter,
        tr("queries down, keys across, %1 x %1 a cell").arg(countText(mask_.block * std::max(1, mask_.blocksOfCell))),
        t.text3, axis);
    struct Line {
        QString name, set;
        std::int64_t blocks;
    };
    const Line lines[] = {{tr("full"), QStringLiteral("blocks.full"), mask_.full},
                          {tr("partial"), QStringLiteral("blocks.partial"), mask_.partial},
                          {tr("empty, skipped"), QStringLiteral("blocks.empty"), mask_.empty}};
    const std::int64_t all = std::max<std::int64_t>(1, mask_.full + mask_.partial + mask_.empty);
    double y = 20;
    for (const Line& line : lines) {
        painter.fillRect(QRectF(0, y + 4, 12, 12), t.sets.at(line.set));
        drawText(painter, QRectF(18, y, 120, 20), Qt::AlignVCenter, line.name, t.text2, font);
        drawText(painter, QRectF(right - 124, y, 60, 20), Qt::AlignRight | Qt::AlignVCenter, countText(line.blocks),
                 t.text1, font);
        drawText(painter, QRectF(right - 60, y, 60, 20), Qt::AlignRight | Qt::AlignVCenter,
                 shareText(static_cast<double>(line.blocks) / static_cast<double>(all)), t.text2, font);
        y += 20;
    }
    hairline(painter, 0, right, y + 3, t.line0);
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    const double used = drawText(painter, QRectF(0, y + 8, right, 16), Qt::AlignVCenter, comparison(), t.text1, strong);
    drawText(painter, QRectF(used + 4, y + 8, right - used - 4, 16), Qt::AlignVCenter, tr("than one causal mask"),
             t.text2, font);
    drawText(
        painter, QRectF(0, y + 24, right, 16), Qt::AlignVCenter,
        tr("over the whole sequence: %1 of %2.").arg(countText(mask_.full + mask_.partial), countText(mask_.causal)),
        t.text2, font);
}

} // namespace vitrine::ui

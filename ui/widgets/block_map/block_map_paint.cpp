// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/block_map/block_map_paint.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kTagHeight = 18;

QRectF cut(const MapPicture& picture, double kv0, double kv1, double q0, double q1) {
    const double ratio = picture.ratio();
    const QPointF corner = picture.layout.map.topLeft();
    const double x0 = picture.view.kv.pixelOf(kv0) / ratio;
    const double x1 = picture.view.kv.pixelOf(kv1) / ratio;
    const double y0 = picture.view.q.pixelOf(q0) / ratio;
    const double y1 = picture.view.q.pixelOf(q1) / ratio;
    return QRectF(x0, y0, x1 - x0, y1 - y0).translated(corner);
}

struct RulerLabel {
    double at = 0; ///< where its line stands
    QRectF box;
    QString text;
};

/// Labels of one ruler that do not cover each other.
std::vector<RulerLabel> rulerLabels(const MapPicture& picture, bool alongKeys) {
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const MapLayout& layout = picture.layout;
    const MapAxis& axis = alongKeys ? picture.view.kv : picture.view.q;
    const double ratio = picture.ratio();
    const std::int64_t step = rulerStep(axis.scale() / ratio, kRulerPixels);
    const double end = std::min(axis.last(), static_cast<double>(axis.length()));
    std::vector<RulerLabel> out;
    for (auto position = static_cast<std::int64_t>(std::ceil(axis.first() / static_cast<double>(step))) * step;
         static_cast<double>(position) <= end + 1e-6; position += step) {
        const double pixel = axis.pixelOf(static_cast<double>(position)) / ratio;
        const QString text = positionText(position);
        const double width = textWidth(text, font) + 2;
        if (alongKeys) {
            const double left = std::clamp(layout.kvRuler.left() + pixel - (position == 0 ? 0 : width / 2), 0.0,
                                           layout.kvRuler.right() - width);
            if (out.empty() || left >= out.back().box.right() + 6) {
                out.push_back({layout.kvRuler.left() + pixel, QRectF(left, 0, width, layout.kvRuler.height()), text});
            }
        } else {
            const double top = std::clamp(layout.qRuler.top() + pixel - (position == 0 ? 4 : 8),
                                          layout.qRuler.top() - 4, layout.qRuler.bottom() - 13);
            out.push_back(
                {layout.qRuler.top() + pixel, QRectF(layout.qRuler.width() - 8 - width, top, width, 16), text});
        }
    }
    return out;
}

/// A tag takes the place of the labels that it would cut.
void eraseLabels(QPainter& painter, const MapPicture& picture, bool alongKeys, const QRectF& tag) {
    for (const RulerLabel& label : rulerLabels(picture, alongKeys)) {
        if (label.box.intersects(tag)) {
            painter.fillRect(label.box.adjusted(-1, 0, 1, 0), themeTokens().canvas);
        }
    }
}

void paintTag(QPainter& painter, const MapPicture& picture, const QRectF& box, const QString& text) {
    const ThemeTokens& t = themeTokens();
    painter.fillRect(box, t.raised);
    painter.setPen(QPen(picture.pinned ? t.accent : t.line2, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
    drawText(painter, box, Qt::AlignCenter, text, t.text1, Theme::instance().font(TypeRole::Axis));
}

void paintTags(QPainter& painter, const MapPicture& picture, const QRectF& marked) {
    const MapLayout& layout = picture.layout;
    const QFont font = Theme::instance().font(TypeRole::Axis);
    if (marked.center().y() >= layout.map.top() && marked.center().y() <= layout.map.bottom()) {
        const double top =
            std::clamp(marked.center().y() - kTagHeight / 2, layout.qRuler.top(), layout.qRuler.bottom() - kTagHeight);
        const QRectF tag(0, std::round(top), layout.qRuler.width() - 6, kTagHeight);
        eraseLabels(painter, picture, false, tag);
        paintTag(painter, picture, tag, countText(picture.cell->q));
    }
    if (marked.center().x() >= layout.map.left() && marked.center().x() <= layout.map.right()) {
        const double width = textWidth(countText(picture.cell->kv), font) + 12;
        const double left = std::clamp(marked.center().x() - width / 2, layout.kvRuler.left(),
                                       std::max(layout.kvRuler.left(), layout.kvRuler.right() - width));
        const QRectF tag(std::round(left), 1, std::round(width), kTagHeight);
        eraseLabels(painter, picture, true, tag);
        paintTag(painter, picture, tag, countText(picture.cell->kv));
    }
}

/// Dots from the marked block to the lens that shows it.
void paintLeader(QPainter& painter, const QRectF& marked, const LensPlace& place, int corner) {
    const ThemeTokens& t = themeTokens();
    if (place.panel.intersects(marked)) {
        return;
    }
    const bool right = corner == 0 || corner == 2;
    const bool top = corner == 0 || corner == 3;
    QPen pen(t.line2, 1);
    pen.setDashPattern({2, 2});
    painter.setPen(pen);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.drawLine(
        QPointF(right ? marked.right() + 2 : marked.left() - 2, top ? marked.top() : marked.bottom()),
        QPointF(right ? place.panel.left() : place.panel.right(), top ? place.panel.bottom() : place.panel.top()));
    painter.setRenderHint(QPainter::Antialiasing, false);
}

QRectF atLeast(QRectF rect, double side) {
    if (rect.width() < side) {
        rect = QRectF(std::floor(rect.center().x() - side / 2), rect.top(), side, rect.height());
    }
    if (rect.height() < side) {
        rect = QRectF(rect.left(), std::floor(rect.center().y() - side / 2), rect.width(), side);
    }
    return rect;
}

} // namespace

QRectF MapPicture::blockRect(std::int64_t row, std::int64_t column) const {
    const kernels::BlockMaskShape& shape = scene.map->shape();
    return cut(*this, static_cast<double>(column * shape.keyBlock),
               static_cast<double>(std::min((column + 1) * shape.keyBlock, shape.keys)),
               static_cast<double>(row * shape.queryBlock),
               static_cast<double>(std::min((row + 1) * shape.queryBlock, shape.queries)));
}

QRectF MapPicture::elementRect(const MaskCell& at) const {
    return cut(*this, static_cast<double>(at.kv), static_cast<double>(at.kv + 1), static_cast<double>(at.q),
               static_cast<double>(at.q + 1));
}

QRectF MapPicture::contentRect() const {
    return cut(*this, 0, static_cast<double>(view.kv.length()), 0, static_cast<double>(view.q.length()))
        .intersected(layout.map);
}

TileBounds visibleTiles(const MapPicture& picture) {
    const auto bounds = [](const MapAxis& axis, std::int64_t& first, std::int64_t& end) {
        const std::int64_t stop =
            std::min(axis.origin() + static_cast<std::int64_t>(std::ceil(axis.extent())), axis.pixels());
        first = axis.origin() / kMapTile;
        end = std::max(first, (stop + kMapTile - 1) / kMapTile);
    };
    TileBounds out;
    bounds(picture.view.kv, out.x0, out.x1);
    bounds(picture.view.q, out.y0, out.y1);
    return out;
}

void paintTiles(QPainter& painter, const MapPicture& picture, const TileSource& tiles) {
    const double ratio = picture.ratio();
    const TileBounds bounds = visibleTiles(picture);
    painter.save();
    painter.setClipRect(picture.layout.map);
    for (std::int64_t y = bounds.y0; y < bounds.y1; ++y) {
        for (std::int64_t x = bounds.x0; x < bounds.x1; ++x) {
            const QImage* image = tiles({x, y});
            if (image == nullptr || image->isNull()) {
                continue;
            }
            const double left = static_cast<double>(x * kMapTile - picture.view.kv.origin()) / ratio;
            const double top = static_cast<double>(y * kMapTile - picture.view.q.origin()) / ratio;
            const double side = kMapTile / ratio;
            painter.drawImage(QRectF(left, top, side, side).translated(picture.layout.map.topLeft()), *image);
        }
    }
    painter.restore();
}

QString positionText(std::int64_t position) {
    constexpr std::int64_t kKilo = 1024, kMega = kKilo * 1024;
    if (position != 0 && position % kMega == 0) {
        return QStringLiteral("%1M").arg(position / kMega);
    }
    if (position != 0 && position % kKilo == 0) {
        return QStringLiteral("%1K").arg(position / kKilo);
    }
    return countText(position);
}

double gutterWidth(std::int64_t queries) {
    const QFont font = Theme::instance().font(TypeRole::Axis);
    return std::max(45.0, std::ceil(textWidth(countText(std::max<std::int64_t>(0, queries - 1)), font)) + 10);
}

void paintGrid(QPainter& painter, const MapPicture& picture) {
    const QColor color(picture.scene.colors.grid);
    const QRectF content = picture.contentRect();
    for (const RulerLabel& label : rulerLabels(picture, true)) {
        plumbline(painter, label.at, content.top(), content.bottom(), color);
    }
    for (const RulerLabel& label : rulerLabels(picture, false)) {
        hairline(painter, content.left(), content.right(), label.at, color);
    }
}

void paintRulers(QPainter& painter, const MapPicture& picture) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QRectF& ruler = picture.layout.kvRuler;
    drawText(painter, QRectF(0, 0, ruler.left() - 8, ruler.height()), Qt::AlignRight | Qt::AlignVCenter, mapText("kv"),
             t.text2, font);
    for (const bool alongKeys : {true, false}) {
        for (const RulerLabel& label : rulerLabels(picture, alongKeys)) {
            drawText(painter, label.box, Qt::AlignCenter, label.text, t.text3, font);
        }
    }
}

void paintCursor(QPainter& painter, const MapPicture& picture) {
    if (picture.scene.map == nullptr || !picture.cell) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const kernels::BlockMaskShape& shape = picture.scene.map->shape();
    const std::int64_t row = picture.cell->q / shape.queryBlock;
    const std::int64_t column = picture.cell->kv / shape.keyBlock;
    const QRectF marked = picture.view.elements() ? picture.elementRect(*picture.cell) : picture.blockRect(row, column);
    const QRectF content = picture.contentRect();
    const QRectF band = atLeast(marked, 1);
    painter.save();
    painter.setClipRect(picture.layout.map);
    const QColor veil = withAlpha(t.text1, 0.10);
    painter.fillRect(QRectF(content.left(), band.top(), content.width(), band.height()), veil);
    painter.fillRect(QRectF(band.left(), content.top(), band.width(), content.height()), veil);
    // A block can be wider than what the raster engine takes.
    const QRectF frame = atLeast(marked, 5).intersected(picture.layout.map.adjusted(-8, -8, 8, 8));
    painter.setPen(QPen(t.text1, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(frame.adjusted(-1.5, -1.5, 0.5, 0.5));
    painter.restore();
    paintTags(painter, picture, band);
    if (picture.lens != nullptr) {
        const LensPlace place =
            lensPlace(picture.layout.map, picture.layout.lensSide, picture.scene, picture.lensCorner);
        painter.save();
        painter.setClipRect(picture.layout.map);
        paintLeader(painter, frame, place, picture.lensCorner);
        painter.restore();
        paintLens(painter, place, *picture.lens, picture.cell->q, picture.cell->kv);
    }
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/paint.h"

#include <QFontMetricsF>
#include <QPixmapCache>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

namespace vitrine::ui {

namespace {

QImage hatchTile(Hatch kind, int tile, const QColor& ink, double dpr) {
    // Whole device pixels, so that the tiles join without a seam at fractional ratios.
    const int side = std::max(2, static_cast<int>(std::lround(tile * dpr)));
    const int line = std::max(1, static_cast<int>(std::lround(dpr)));
    QImage image(side, side, QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    const QRgb color = qPremultiply(ink.rgba());
    const auto set = [&](int x, int y) {
        image.setPixel(((x % side) + side) % side, ((y % side) + side) % side, color);
    };
    for (int i = 0; i < side; ++i) {
        for (int w = 0; w < line; ++w) {
            switch (kind) {
            case Hatch::None:
                break;
            case Hatch::BackDiagonal:
                set(i + w, side - 1 - i);
                break;
            case Hatch::ForwardDiagonal:
                set(i + w, i);
                break;
            case Hatch::CrossedDiagonal:
                set(i + w, side - 1 - i);
                set(i + w, i);
                break;
            case Hatch::Horizontal:
                set(i, w);
                break;
            case Hatch::Vertical:
                set(w, i);
                break;
            case Hatch::Grid:
                set(i, w);
                set(w, i);
                break;
            case Hatch::Dots:
                if (i < line) {
                    set(i, w);
                }
                break;
            }
        }
    }
    return image;
}

} // namespace

double deviceRatio(const QPainter& painter) {
    return std::max(0.5, painter.deviceTransform().m11() / std::max(1e-6, painter.worldTransform().m11()));
}

QBrush hatchBrush(Hatch kind, int tile, const QColor& ink, double dpr) {
    if (kind == Hatch::None) {
        return Qt::NoBrush;
    }
    using Key = std::tuple<int, int, QRgb, int>;
    static std::mutex mutex;
    static std::map<Key, QImage> tiles;
    const Key key{static_cast<int>(kind), tile, ink.rgba(), static_cast<int>(std::lround(dpr * 100))};
    QImage image;
    {
        const std::lock_guard lock(mutex);
        QImage& kept = tiles[key];
        if (kept.isNull()) {
            kept = hatchTile(kind, tile, ink, dpr);
        }
        image = kept;
    }
    QBrush brush(image);
    brush.setTransform(QTransform::fromScale(1.0 / dpr, 1.0 / dpr));
    return brush;
}

QBrush categoryHatch(const CategoryStyle& style, double dpr) {
    const bool white = style.ink.lightness() > 127;
    return hatchBrush(style.hatch, style.tile, withAlpha(style.ink, white ? 0.26 : 0.20), dpr);
}

QBrush freeHatch(const ThemeTokens& theme, int tile, double dpr) {
    return hatchBrush(Hatch::BackDiagonal, tile, withAlpha(theme.line2, 0.85), dpr);
}

QColor withAlpha(QColor color, double alpha) {
    color.setAlphaF(static_cast<float>(alpha));
    return color;
}

void fillCategory(QPainter& painter, const QRectF& rect, const CategoryStyle& style, double dpr) {
    painter.fillRect(rect, style.fill);
    if (rect.height() >= 8 && rect.width() >= 2 && style.hatch != Hatch::None) {
        painter.fillRect(rect, categoryHatch(style, dpr));
    }
}

void drawSwatch(QPainter& painter, const QRectF& rect, const CategoryStyle& style) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(style.fill);
    painter.drawRoundedRect(rect, 2, 2);
    if (style.hatch != Hatch::None) {
        painter.setBrushOrigin(rect.topLeft());
        painter.setBrush(categoryHatch(style, deviceRatio(painter)));
        painter.drawRoundedRect(rect, 2, 2);
    }
    painter.restore();
}

void hairline(QPainter& painter, double x0, double x1, double y, const QColor& color) {
    painter.fillRect(QRectF(x0, std::floor(y), x1 - x0, 1), color);
}

void plumbline(QPainter& painter, double x, double y0, double y1, const QColor& color) {
    painter.fillRect(QRectF(std::floor(x), y0, 1, y1 - y0), color);
}

double drawText(QPainter& painter, const QRectF& rect, int alignment, const QString& text, const QColor& color,
                const QFont& font) {
    const QFontMetricsF metrics(font);
    const double full = metrics.horizontalAdvance(text);
    const QString shown = full <= rect.width() + 0.5 ? text : metrics.elidedText(text, Qt::ElideRight, rect.width());
    painter.setFont(font);
    painter.setPen(color);
    painter.drawText(rect, alignment | Qt::TextSingleLine | Qt::TextDontClip, shown);
    return std::min(full, rect.width());
}

double textWidth(const QString& text, const QFont& font) {
    return QFontMetricsF(font).horizontalAdvance(text);
}

} // namespace vitrine::ui

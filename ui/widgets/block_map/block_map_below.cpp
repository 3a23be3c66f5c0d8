// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Below the map: legend, strips of captured tensors, load of the block columns.

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "base/integers.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/block_map/block_map_paint.h"

namespace vitrine::ui {

namespace {

QString named(const char* name, std::int64_t count) {
    return QStringLiteral("%1 %2").arg(mapText(name), countText(count));
}

QString scoreText(double value) {
    QString text = QString::number(value, 'g', 3);
    return text.replace(QLatin1Char('-'), QChar(0x2212));
}

QString pixelsText(double pixels) {
    const double rounded = pixels >= 10 ? std::round(pixels) : std::round(pixels * 10) / 10;
    return QString::number(rounded);
}

/// Five steps of the colour scale, with the ends' values.
void paintHeatScale(QPainter& painter, const MapPicture& picture) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Table);
    const HeatScale& heat = picture.scene.heat;
    const double low = heat.signedValues ? -heat.high : heat.low;
    constexpr int kSteps = 5;
    constexpr double kStep = 26;
    double x = picture.layout.legend.left();
    const QRectF& row = picture.layout.legend;
    const auto text = [&](const QString& word, const QColor& color) {
        const double width = textWidth(word, font) + 1;
        drawText(painter, QRectF(x, row.top(), width, row.height()), Qt::AlignVCenter, word, color, font);
        x += width + 8;
    };
    text(mapText("score"), t.text3);
    const bool flat = heat.high <= low;
    for (int i = 0; i < (flat ? 1 : kSteps); ++i) {
        const double value = flat ? low : low + (heat.high - low) * i / (kSteps - 1);
        const QRectF box(x, row.center().y() - 6, 12, 12);
        paintLegendSwatch(painter, box,
                          {{}, {heatColor(picture.scene.colors, heat, static_cast<float>(value)), 0, Hatch::None}, 0},
                          t.line2);
        x += 18;
        text(scoreText(value), t.text2);
        x += kStep - 18;
    }
    paintLegendSwatch(painter, QRectF(x, row.center().y() - 6, 12, 12),
                      {{}, maskedColor(picture.scene.colors), kElementPitch}, t.line2);
    x += 18;
    text(mapText("masked"), t.text2);
    const QString scale = picture.view.elements() ? mapScaleText(picture) : mapText("each px shows one score");
    const double width = textWidth(scale, font) + 1;
    if (row.right() - width >= x) {
        drawText(painter, QRectF(row.right() - width, row.top(), width, row.height()),
                 Qt::AlignVCenter | Qt::AlignRight, scale, t.text3, font);
    }
}

/// First run that ends after a key.
std::vector<MaskStripRun>::const_iterator runAt(const MaskStrip& strip, std::int64_t key) {
    return std::upper_bound(strip.runs.begin(), strip.runs.end(), key,
                            [](std::int64_t wanted, const MaskStripRun& run) { return wanted < run.end; });
}

void paintStrip(QPainter& painter, const MapPicture& picture, const MaskStrip& strip, const QRectF& row) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const MapAxis& axis = picture.view.kv;
    const double ratio = picture.ratio();
    drawText(painter, QRectF(2, row.top(), row.left() - 6, row.height()), Qt::AlignRight | Qt::AlignVCenter, strip.name,
             t.text2, font);
    const double right =
        std::min(axis.extent(), static_cast<double>(axis.pixels()) - static_cast<double>(axis.origin()));
    double pixel = 0;
    double hatchedFrom = -1;
    const auto endHatch = [&](double until) {
        if (hatchedFrom >= 0) {
            const QRectF box(row.left() + hatchedFrom / ratio, row.top(), (until - hatchedFrom) / ratio, row.height());
            painter.fillRect(box, t.hover);
            painter.fillRect(box, freeHatch(t, 6, deviceRatio(painter)));
            hatchedFrom = -1;
        }
    };
    while (pixel < right) {
        const auto key = static_cast<std::int64_t>(std::floor(axis.positionAt(pixel) + 1e-6));
        const auto run = runAt(strip, key);
        if (run == strip.runs.end()) {
            break;
        }
        const double end = std::min(right, axis.pixelOf(static_cast<double>(run->end)));
        const double begin = std::max(0.0, axis.pixelOf(static_cast<double>(run->begin)));
        if ((end - begin) / ratio < 2) {
            hatchedFrom = hatchedFrom < 0 ? pixel : hatchedFrom;
            pixel = std::max(pixel + 1, end);
            continue;
        }
        endHatch(begin);
        const bool ofKey = picture.cell && picture.cell->kv >= run->begin && picture.cell->kv < run->end;
        const bool ofQuery = picture.cell && picture.cell->q >= run->begin && picture.cell->q < run->end;
        const QRectF box(row.left() + begin / ratio, row.top(), (end - begin) / ratio - 1, row.height());
        painter.fillRect(box, ofQuery ? t.selection : ofKey ? t.pressed : t.hover);
        const QString text = countText(run->value);
        if (box.width() > textWidth(text, font) + 6) {
            drawText(painter, box, Qt::AlignCenter, text, t.text1, font);
        }
        pixel = std::max(pixel + 1e-3, end);
    }
    endHatch(right);
}

} // namespace

std::vector<LegendEntry> mapLegend(const MapPicture& picture) {
    const TileScene& scene = picture.scene;
    if (scene.map == nullptr || scene.scores) {
        return {};
    }
    if (scene.elements()) {
        return elementLegend(scene);
    }
    const MapColors& colors = scene.colors;
    const MapColor empty{colors.empty, 0, Hatch::None};
    if (scene.other != nullptr) {
        const auto count = [&](const char* name, std::size_t kind) {
            return picture.difference ? named(name, (*picture.difference)[kind]) : mapText(name);
        };
        return {{count("only A", mask_kind::kOnlyA), colors.onlyA, 0},
                {count("only B", mask_kind::kOnlyB), colors.onlyB, kBlockPitch},
                {count("both", mask_kind::kBoth), colors.both, 0},
                {count("neither", mask_kind::kNeither), empty, 0}};
    }
    return {{named("full", scene.map->full), colors.full, 0},
            {named("partial", scene.map->partial), colors.partial, kBlockPitch},
            {named("empty", scene.map->empty), empty, 0}};
}

QString mapScaleText(const MapPicture& picture) {
    const MapAxis& axis = picture.view.kv;
    const double logical = axis.scale() / picture.ratio();
    const QString tokens = countText(axis.block());
    if (picture.view.elements()) {
        return mapText("%1 px an element").arg(pixelsText(logical));
    }
    const double block = logical * static_cast<double>(axis.block());
    if (block >= 1) {
        return mapText("%1 px a block, %2 tokens").arg(pixelsText(block), tokens);
    }
    return mapText("%1 blocks a px, %2 tokens each").arg(pixelsText(1 / block), tokens);
}

void paintLegend(QPainter& painter, const MapPicture& picture) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Table);
    const QRectF& row = picture.layout.legend;
    double x = row.left();
    if (picture.scene.scores) {
        paintHeatScale(painter, picture);
        return;
    }
    for (const LegendEntry& entry : mapLegend(picture)) {
        const double width = textWidth(entry.text, font) + 1;
        if (x + 18 + std::min(width, 60.0) > row.right()) {
            return;
        }
        paintLegendSwatch(painter, QRectF(x, row.center().y() - 6, 12, 12), entry, t.line2);
        const double room = std::min(width, row.right() - x - 18);
        drawText(painter, QRectF(x + 18, row.top(), room, row.height()), Qt::AlignVCenter, entry.text, t.text2, font);
        x += 18 + width + 18;
    }
    const QString scale = mapScaleText(picture);
    const double right = std::clamp(picture.contentRect().right(), row.left(), row.right());
    const double width = textWidth(scale, font) + 1;
    const double end = right - width >= x ? right : row.right() - 3;
    if (end - width >= x) {
        drawText(painter, QRectF(end - width, row.top(), width, row.height()), Qt::AlignVCenter | Qt::AlignRight, scale,
                 t.text3, font);
    }
}

void paintStrips(QPainter& painter, const MapPicture& picture) {
    const std::vector<MaskStrip>& strips = picture.scene.map->strips;
    for (std::size_t i = 0; i < std::min(strips.size(), picture.layout.strips.size()); ++i) {
        paintStrip(painter, picture, strips[i], picture.layout.strips[i]);
    }
}

void paintColumnLoad(QPainter& painter, const MapPicture& picture) {
    const QRectF& box = picture.layout.load;
    if (box.isEmpty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const MaskMap& map = *picture.scene.map;
    const MapAxis& axis = picture.view.kv;
    const double ratio = picture.ratio();
    drawText(painter, QRectF(2, box.top(), box.left() - 6, box.height()), Qt::AlignRight | Qt::AlignVCenter,
             picture.scene.other != nullptr ? mapText("blocks, A") : mapText("blocks"), t.text2, font);
    const std::int64_t begin = axis.origin();
    const auto end = begin + static_cast<std::int64_t>(std::ceil(axis.extent()));
    const AxisCells cells = axisCells(axis.length(), axis.block(), axis.scale(), begin, end);
    const double top = static_cast<double>(std::max<std::int64_t>(1, map.mostInColumn));
    const bool gap = cells.single && axis.blockPixels() >= 4;
    painter.save();
    painter.setClipRect(box);
    for (std::size_t i = 0; i + 1 < cells.edges.size(); ++i) {
        std::int64_t full = 0;
        std::int64_t partial = 0;
        for (std::int64_t column = cells.edges[i]; column < cells.edges[i + 1]; ++column) {
            const std::int64_t sum =
                std::int64_t{map.columnFull[base::toIndex(column)]} + map.columnPartial[base::toIndex(column)];
            if (sum > full + partial) {
                full = map.columnFull[base::toIndex(column)];
                partial = map.columnPartial[base::toIndex(column)];
            }
        }
        const double left = box.left() + cells.pixels[i] / ratio;
        const double width = (cells.pixels[i + 1] - cells.pixels[i] - (gap ? 1 : 0)) / ratio;
        const double fullHeight = static_cast<double>(full) / top * box.height();
        const double partialHeight = static_cast<double>(partial) / top * box.height();
        painter.fillRect(QRectF(left, box.bottom() - fullHeight, width, fullHeight),
                         QColor(picture.scene.colors.full.fill));
        painter.fillRect(QRectF(left, box.bottom() - fullHeight - partialHeight, width, partialHeight),
                         QColor(picture.scene.colors.partial.fill));
    }
    painter.restore();
    const double right = std::clamp(picture.contentRect().right(), box.left(), box.right());
    hairline(painter, box.left(), right, box.bottom(), t.line1);
    const QString most = countText(map.mostInColumn);
    const double width = textWidth(most, font) + 6;
    const QRectF label(right - width - 1, box.top() - 3, width, 14);
    painter.fillRect(label, withAlpha(t.canvas, 0.8));
    drawText(painter, label.adjusted(0, 0, -3, 0), Qt::AlignRight | Qt::AlignVCenter, most, t.text3, font);
}

} // namespace vitrine::ui
